create function pgflow.failure_endings(verdicts pgflow.task_verdict[])
returns pgflow.step_ending[]
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  return array(
    select
      row(
        judged.run_id,
        judged.step_slug,
        case when judged.violates then 'fail' else step.when_exhausted end,
        case when not judged.violates and step.when_exhausted <> 'fail' then 'handler_failed' end,
        case
          when judged.violates then format(
            '[TYPE_VIOLATION] Map step %s expects array input but dependency %s produced %s',
            (
              select target.step_slug
              from pgflow.deps as dep
              inner join pgflow.steps as target
                on target.flow_slug = dep.flow_slug
                and target.step_slug = dep.step_slug
                and target.step_type = 'map'
              where dep.flow_slug = step.flow_slug
                and dep.dep_slug = step.step_slug
              order by target.step_index
              limit 1
            ),
            judged.step_slug,
            coalesce(jsonb_typeof(judged.wrong_output), 'null')
          )
          else judged.error_message
        end
      )::pgflow.step_ending
    from (
      select
        verdict.run_id,
        verdict.step_slug,
        bool_or(verdict.verdict = 'violates') as violates,
        (array_agg(verdict.output order by verdict.position) filter (where verdict.verdict = 'violates'))[1] as wrong_output,
        (array_agg(verdict.error_message order by verdict.position) filter (where verdict.verdict = 'exhausted'))[1]
          as error_message,
        min(verdict.position) as position
      from unnest(verdicts) as verdict
      where verdict.verdict in ('violates', 'exhausted')
      group by verdict.run_id, verdict.step_slug
    ) as judged
    cross join lateral (
      select found.flow_slug from pgflow.runs as found where found.run_id = judged.run_id limit 1
    ) as run
    inner join pgflow.steps as step
      on step.flow_slug = run.flow_slug
      and step.step_slug = judged.step_slug
    order by judged.position
  );
end
$function$;

comment on function pgflow.failure_endings(pgflow.task_verdict[]) is
'Internal: how the steps end whose tasks failed for good, in the order of the results: an output of the wrong type fails the run, attempts that are used up are for whenExhausted to decide.';
