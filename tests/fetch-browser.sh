#!/bin/sh
# Unpack a headless Chromium, with the libraries and a font that this machine lacks, from its own Debian mirror into a folder, without root.
#
#   tests/fetch-browser.sh FOLDER
#
# Makes FOLDER/chromium, a script that starts it. Nothing happens where that is there, CHROMIUM_BIN names one or the machine has its own.
# What cannot be had costs one line; the tests that need it are skipped and say so.
set -eu
[ -n "${CHROMIUM_BIN:-}" ] && exit 0
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && exit 0
done
mkdir -p "$1"
folder=$(cd "$1" && pwd)
state=$folder/apt
[ -x "$folder/chromium" ] && "$folder/chromium" --version >/dev/null 2>&1 && exit 0
. "$(dirname "$0")/private-apt.sh"

give_up() {
    rm -rf "$state" "$folder/staged"
    echo "browser: no Chromium ($1); name one by CHROMIUM_BIN, else the tests of the page in a browser are skipped" >&2
    exit 0
}

# What an installation here would bring, one package a line.
lacking() {
    private_apt -q=1 -s -o Debug::NoLocking=1 -o APT::Install-Recommends=0 install "$@" | awk '$1 == "Inst" { print $2 }'
}

command -v apt-get >/dev/null && command -v dpkg >/dev/null || give_up "no apt here"
private_apt update >/dev/null 2>&1 || give_up "the package mirror does not answer"
packages=$(lacking chromium-headless-shell fontconfig-config fonts-dejavu-core 2>/dev/null) || give_up "the mirror has no chromium-headless-shell"
rm -rf "$folder/staged" && mkdir -p "$folder/staged/packages"
# shellcheck disable=SC2086 # one word a package
(cd "$folder/staged/packages" && private_apt download $packages) >/dev/null 2>&1 || give_up "its packages cannot be downloaded"
for package in "$folder"/staged/packages/*.deb; do
    dpkg -x "$package" "$folder/staged/tree" || give_up "$(basename "$package") cannot be unpacked"
done
rm -rf "$folder/tree" && mv "$folder/staged/tree" "$folder/tree"
libraries=$(find "$folder/tree" -name '*.so*' -exec dirname {} + | sort -u | paste -s -d :)
cat > "$folder/staged/chromium" <<SCRIPT
#!/bin/sh
# Fonts and libraries that the machine lacks stand beside the program.
export LD_LIBRARY_PATH="$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
export FONTCONFIG_FILE="$folder/fonts.conf"
exec "$folder/tree/usr/lib/chromium/chromium-headless-shell" "\$@"
SCRIPT
cat > "$folder/fonts.conf" <<FONTS
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig><dir>/usr/share/fonts</dir><dir>$folder/tree/usr/share/fonts</dir><cachedir>$folder/fonts</cachedir></fontconfig>
FONTS
chmod +x "$folder/staged/chromium"
mv "$folder/staged/chromium" "$folder/chromium"
rm -rf "$state" "$folder/staged"
