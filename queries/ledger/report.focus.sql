-- Charges for GPU-hours in the columns of FOCUS 1.3, one per day, node, model, workload, bucket and method.
--
-- Idle and unallocated hours are separate charges. Hours of a model without a price are no charges. Without prices or a currency code
-- the table is omitted. Energy is in report.cost only.
--
-- grain:  BillingAccountId, ResourceId, SkuId, ChargePeriodStart, SubAccountId, AllocatedResourceId, x_Bucket, x_HoursMethod
-- reads:  period.charge
-- params: currency
-- source: FOCUS 1.3, Cost and Usage; period.charge
-- columns: AllocatedMethodId, AllocatedResourceId, AllocatedResourceName, AllocatedTags, BilledCost, BillingAccountId, BillingAccountName, BillingCurrency,
--          BillingPeriodStart, BillingPeriodEnd, ChargeCategory, ChargeClass, ChargeDescription, ChargeFrequency, ChargePeriodStart, ChargePeriodEnd,
--          ConsumedQuantity, ConsumedUnit, ContractedCost, ContractedUnitPrice, EffectiveCost, HostProviderName, InvoiceId, InvoiceIssuerName, ListCost,
--          ListUnitPrice, PricingCategory, PricingQuantity, PricingUnit, ProviderName, PublisherName, ResourceId, ResourceName, ResourceType,
--          ServiceCategory, ServiceName, ServiceProviderName, ServiceSubcategory, SkuId, SkuMeter, SkuPriceDetails, SkuPriceId, SubAccountId, SubAccountName,
--          SubAccountType, Tags, x_Bucket, x_HoursMethod
-- noqa: disable=CP02
select
    if(namespace = '', null, coalesce(nullif(hours_method, ''), 'exclusive')) as AllocatedMethodId,
    if(namespace = '', null, concat_ws('/', namespace, workload_kind, workload)) as AllocatedResourceId,
    if(namespace = '', null, workload) as AllocatedResourceName,
    if(
        namespace = '', null, json_object('team', team, 'namespace', namespace, 'workload_kind', workload_kind)
    ) as AllocatedTags,
    hours_cost as BilledCost,
    cluster as BillingAccountId,
    cluster as BillingAccountName,
    $currency as BillingCurrency,
    date_trunc('month', day)::timestamp as BillingPeriodStart,
    date_trunc('month', day)::timestamp + interval 1 month as BillingPeriodEnd,
    'Usage' as ChargeCategory,
    null::varchar as ChargeClass,
    concat_ws(' ', nullif(gpu_model, ''), 'hours,', replace(bucket, '_', ' ')) as ChargeDescription,
    'Usage-Based' as ChargeFrequency,
    day::timestamp as ChargePeriodStart,
    day::timestamp + interval 1 day as ChargePeriodEnd,
    gpu_hours as ConsumedQuantity,
    'Hours' as ConsumedUnit,
    hours_cost as ContractedCost,
    hour_cost as ContractedUnitPrice,
    hours_cost as EffectiveCost,
    cluster as HostProviderName,
    null::varchar as InvoiceId,
    cluster as InvoiceIssuerName,
    hours_cost as ListCost,
    hour_cost as ListUnitPrice,
    'Standard' as PricingCategory,
    gpu_hours as PricingQuantity,
    'Hours' as PricingUnit,
    cluster as ProviderName,
    cluster as PublisherName,
    nullif(node_name, '') as ResourceId,
    nullif(node_name, '') as ResourceName,
    if(node_name = '', null, 'GPU node') as ResourceType,
    'Compute' as ServiceCategory,
    'GPU' as ServiceName,
    cluster as ServiceProviderName,
    'Containers' as ServiceSubcategory,
    coalesce(nullif(gpu_model, ''), 'Unknown model') as SkuId,
    'GPU-hours' as SkuMeter,
    null::varchar as SkuPriceDetails,
    concat(SkuId, ' at ', hour_cost) as SkuPriceId,
    nullif(namespace, '') as SubAccountId,
    nullif(namespace, '') as SubAccountName,
    if(namespace = '', null, 'Namespace') as SubAccountType,
    if(team = '', null, json_object('team', team)) as Tags,
    bucket as x_Bucket,
    hours_method as x_HoursMethod
from period.charge
where hour_cost is not null
