-- Whether a node's labels satisfy one expression of a node selector or node affinity.
--
-- parameters:
--   rule    expression: key, operator, values
--   labels  labels of the node, by name
-- source: Kubernetes node selector requirements; an operator that is not known holds
create macro rule_holds(rule, labels) as case rule.operator
    when 'In' then coalesce(list_contains(rule.values, labels[rule.key]), false)
    when 'NotIn' then not coalesce(list_contains(rule.values, labels[rule.key]), false)
    when 'Exists' then labels[rule.key] is not null
    when 'DoesNotExist' then labels[rule.key] is null
    else true
end
