-- Whether a pod is in all scopes of a ResourceQuota; null where the collected data of the pod does not show it.
--
-- parameters:
--   scopes          scopes of the quota (day.quota_terms); null counts as none
--   priority_class  priority class of the pod, '' without; null where unknown
--   pod_scopes      other scopes that the pod is in (lake.pod quota_scopes); null where unknown
-- source: Kubernetes pkg/quota/v1/evaluator/core/pods.go, podMatchesScopeFunc
create macro is_in_scopes(scopes, priority_class, pod_scopes) as nullif(coalesce(list_min(list_transform(
    from_json(nullif(scopes, ''), '[{"scopeName": "varchar", "operator": "varchar", "values": ["varchar"]}]'),
    lambda scope: coalesce(2 * case
        when scope.scopename != 'PriorityClass' then list_contains(pod_scopes, scope.scopename)
        when scope.operator = 'In' then list_contains(scope.values, priority_class)
        when scope.operator = 'NotIn' then not list_contains(scope.values, priority_class)
        when scope.operator = 'Exists' then priority_class != ''
        when scope.operator = 'DoesNotExist' then priority_class = ''
    end::int, 1)
)), 2), 1) = 2
