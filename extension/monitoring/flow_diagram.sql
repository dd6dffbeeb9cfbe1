create function pgflow.flow_diagram(flow_slug text)
returns text
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  if not exists (select from pgflow.flows as flow where flow.flow_slug = flow_diagram.flow_slug) then
    perform pgflow.refuse_unknown_flow(flow_diagram.flow_slug);
  end if;

  return (
    with step as (
      select
        step.step_slug,
        step.step_index,
        step.step_type,
        step.queue_name,
        step.deps_count,
        nullif(
          concat_ws(
            ' and ',
            case when step.required_input_pattern is not null then 'if' end,
            case when step.forbidden_input_pattern is not null then 'ifNot' end
          ),
          ''
        ) || ', else ' || step.when_unmet as condition
      from pgflow.steps as step
      where step.flow_slug = flow_diagram.flow_slug
    ),
    line as (
      select 0 as section, 0 as target, 0 as source, 'flowchart LR' as code
      union all
      select
        1,
        step.step_index,
        0,
        -- The doubled frame is Mermaid's for something that runs many times.
        format(
          case step.step_type when 'map' then '  s%s[[%s]]' else '  s%s[%s]' end,
          step.step_index,
          pgflow.mermaid_label(
            step.step_slug || case step.step_type when 'map' then ' (map)' else '' end,
            step.queue_name
          )
        )
      from step
      union all
      select
        2,
        step.step_index,
        coalesce(source.step_index, -1),
        format(
          '  %s -->%s s%s',
          coalesce('s' || source.step_index, 'input(["input"])'),
          coalesce('|' || pgflow.mermaid_label(step.condition) || '|', ''),
          step.step_index
        )
      from step
      left join pgflow.deps as dep
        on dep.flow_slug = flow_diagram.flow_slug
        and dep.step_slug = step.step_slug
      left join step as source on source.step_slug = dep.dep_slug
      -- The condition of a root step is about the run's input, which is drawn only where there is such a condition.
      where source.step_slug is not null
        or step.condition is not null
    )
    select string_agg(line.code, chr(10) order by line.section, line.target, line.source)
    from line
  );
end
$function$;

comment on function pgflow.flow_diagram(text) is
'A flow as a Mermaid flowchart: each step with its queue, maps in a double frame, an edge for each dependency, marked with if or ifNot and what becomes of the step when its condition is not met. Raises PF018 for an unknown flow.';
