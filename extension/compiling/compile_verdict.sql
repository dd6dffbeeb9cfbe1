create function pgflow.compile_verdict(flow_slug text, shape jsonb, allow_data_loss boolean, queue_mode text)
returns table (status text, differences text[])
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  of_shape text[];
  of_routing text[];
begin
  if not exists (select from pgflow.flows as flow where flow.flow_slug = compile_verdict.flow_slug) then
    return query
    select 'compiled', '{}'::text[];
    return;
  end if;

  of_shape := pgflow.shape_differences(compile_verdict.flow_slug, compile_verdict.shape);
  of_routing := pgflow.routing_differences(
    compile_verdict.flow_slug,
    compile_verdict.queue_mode,
    pgflow.shape_slugs(compile_verdict.shape)
  );

  return query
  select
    case
      when of_shape || of_routing = '{}' then 'verified'
      when compile_verdict.allow_data_loss or pgflow.is_local() then 'recompiled'
      when of_shape <> '{}' then 'mismatch'
      else 'refused'
    end,
    of_shape || of_routing;
end
$function$;

comment on function pgflow.compile_verdict(text, jsonb, boolean, text) is
'Internal: what has to happen so that a flow is as the checked arguments say: compiled, verified, recompiled, mismatch, or refused (the shape is equal, the routing is not); and how it differs now. Changes nothing.';
