create function pgflow.coverage_gaps(flow_slug text default null)
returns setof pgflow.unserved_queues
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  if coverage_gaps.flow_slug is not null
    and not exists (select from pgflow.flows as flow where flow.flow_slug = coverage_gaps.flow_slug)
  then
    perform pgflow.refuse_unknown_flow(coverage_gaps.flow_slug);
  end if;

  return query
  select gap.*
  from pgflow.unserved_queues as gap
  where coverage_gaps.flow_slug is null
    or gap.flow_slug = coverage_gaps.flow_slug
  order by gap.flow_slug collate "C", gap.step_slug collate "C";
end
$function$;

comment on function pgflow.coverage_gaps(text) is
'The part of stuck_work about missing workers, of one flow or of all: queues on which work waits and that no live worker serves. Raises PF018 for an unknown flow.';
