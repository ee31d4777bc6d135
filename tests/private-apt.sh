# To be sourced, with $state set to a folder: apt with its state there, so that neither root nor the system's package lists are needed.
private_apt() {
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
    apt-get -qq -o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache" -o Acquire::Languages=none \
        -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o APT::Sandbox::User="$(id -un)" "$@"
}
