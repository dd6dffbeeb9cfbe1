begin;
\ir ../helpers.psql
\ir ../recorded_events.psql
select plan(10);

-- One flow with everything, in both modes.

create temporary table shape as
select
  jsonb_build_array(
    pg_temp.map('each'),
    pg_temp.step('first'),
    pg_temp.map('again', 'each'),
    pg_temp.step('gate', 'first', pg_temp.only_if('{"first": {"route": "help"}}', 'skip')),
    pg_temp.step('behind', 'gate'),
    pg_temp.step('cut', 'first', pg_temp.only_if('{"first": {"route": "help"}}', 'skip-cascade')),
    pg_temp.step('below', 'cut'),
    pg_temp.step('breaks', 'first', pg_temp.options(max_attempts => 2, base_delay => 0) || '{"whenExhausted": "skip"}'),
    pg_temp.map('of_broken', 'breaks'),
    pg_temp.step('join', 'again,behind,breaks,of_broken'),
    pg_temp.step('last', 'join,first')
  ) as steps;

select pg_temp.compile(queue_mode || '_mode', queue_mode, steps) from shape cross join unnest(array['flow', 'step']) as queue_mode;

-- Works on the oldest message, whichever step it is of, so that both modes do the same in the same order.
create function pg_temp.work_through(flow_slug text)
returns int
language plpgsql
as $$
declare
  claimed pgflow.claim_outcome;
  done int := 0;
begin
  loop
    select task.*
    into claimed
    from (
      select step.step_slug
      from pgflow.step_tasks as queued
      inner join pgflow.steps as step on (step.flow_slug, step.step_slug) = (queued.flow_slug, queued.step_slug)
      where queued.flow_slug = work_through.flow_slug
        and queued.status = 'queued'
      order by step.step_index, queued.task_index
      limit 1
    ) as next
    cross join lateral pg_temp.claim(work_through.flow_slug, case when work_through.flow_slug = 'step_mode' then next.step_slug end) as task;

    exit when not found;
    done := done + 1;

    if claimed.step_slug = 'breaks' then
      perform pgflow.fail_task(claimed.run_id, claimed.step_slug, claimed.task_index, 'attempt ' || claimed.attempt);
    else
      perform pgflow.complete_task(
        claimed.run_id, claimed.step_slug, claimed.task_index,
        case claimed.step_slug when 'first' then '{"route": "sales"}' else jsonb_build_object('from', claimed.input) end
      );
    end if;
  end loop;

  return done;
end
$$;

select pg_temp.start(flow_slug, flow_slug, '["a", "b", "c"]') from unnest(array['flow_mode', 'step_mode']) as flow_slug;
select is(pg_temp.work_through('flow_mode'), 12, 'flow mode: a run with everything is worked on');
select is(pg_temp.work_through('step_mode'), 12, 'step mode: the same work');
select is(pg_temp.run('flow_mode'), 'completed, 0 left', 'flow mode: it completes');
select is(pg_temp.run('step_mode'), 'completed, 0 left', 'step mode: it completes');
select is(pg_temp.output('step_mode'), pg_temp.output('flow_mode'), 'with the same output');
select is(
  pg_temp.output('step_mode'),
  jsonb_build_object(
    'last',
    jsonb_build_object(
      'from',
      jsonb_build_object(
        'first', '{"route": "sales"}'::jsonb,
        'join', jsonb_build_object(
          'from', jsonb_build_object(
            'again', '[{"from": {"from": "a"}}, {"from": {"from": "b"}}, {"from": {"from": "c"}}]'::jsonb,
            'behind', '{"from": {}}'::jsonb,
            'of_broken', '[]'::jsonb
          )
        )
      )
    )
  ),
  'which is what went through the steps'
);
select is(
  pg_temp.steps('step_mode'), pg_temp.steps('flow_mode'), 'the same steps were run and skipped'
);
select is(
  (
    select array_agg(jsonb_strip_nulls(to_jsonb(task) - '{flow_slug,run_id,message_id,queue_name,queued_at,started_at,completed_at,failed_at,last_worker_id}'::text[]) order by step_slug, task_index)
    from pgflow.step_tasks as task
    where flow_slug = 'step_mode'
  ),
  (
    select array_agg(jsonb_strip_nulls(to_jsonb(task) - '{flow_slug,run_id,message_id,queue_name,queued_at,started_at,completed_at,failed_at,last_worker_id}'::text[]) order by step_slug, task_index)
    from pgflow.step_tasks as task
    where flow_slug = 'flow_mode'
  ),
  'the same tasks, attempts and errors'
);
select is(
  (select array_agg(event order by number) from realtime.sent where topic like '%' || pg_temp.id('step_mode')),
  (select array_agg(event order by number) from realtime.sent where topic like '%' || pg_temp.id('flow_mode')),
  'the same events in the same order'
);
select is_empty(
  $$
    select * from pg_temp.contradictions('flow_mode')
    union all
    select * from pg_temp.contradictions('step_mode')
    union all
    select message::text from pg_temp.messages('flow_mode')
    union all
    select message::text from pg_temp.messages('step_mode')
  $$,
  'nothing is left of either'
);

select * from finish();
rollback;
