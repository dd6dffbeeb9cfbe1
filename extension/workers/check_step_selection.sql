create function pgflow.check_step_selection(flow_slug text, step_slug text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  mode text;
  known_steps text[];
begin
  select flow.queue_mode into mode from pgflow.flows as flow where flow.flow_slug = check_step_selection.flow_slug;

  known_steps := array(
    select step.step_slug
    from pgflow.steps as step
    where step.flow_slug = check_step_selection.flow_slug
    order by step.step_index
  );

  if (mode = 'step' and check_step_selection.step_slug = any(known_steps))
    or (mode = 'flow' and check_step_selection.step_slug is null)
  then
    return;
  end if;

  raise exception using
    errcode = 'PF014',
    message = case
      when mode = 'flow'
        then format('Flow "%s" is in flow mode: its workers select no step.', check_step_selection.flow_slug)
      when check_step_selection.step_slug is null
        then format('Flow "%s" has a queue for every step: a worker must select one.', check_step_selection.flow_slug)
      else format('Flow "%s" has no step "%s".', check_step_selection.flow_slug, check_step_selection.step_slug)
    end,
    detail = format('Its steps: %s.', coalesce(nullif(array_to_string(known_steps, ', '), ''), 'none')),
    hint = case
      when mode = 'flow' then 'Leave step_slug out: one worker serves every step of the flow.'
      else 'Pass one of them as step_slug; slugs are case-sensitive.'
    end;
end
$function$;

comment on function pgflow.check_step_selection(text, text) is
'Internal: raises PF014, listing the valid steps, unless the step is one of the step-mode flow''s, or is null for a flow-mode flow.';
