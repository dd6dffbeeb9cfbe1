begin;
\ir ../helpers.psql
\ir ../recorded_events.psql
select plan(22);

select pg_temp.compile(
  'plans', 'step',
  jsonb_build_array(
    pg_temp.map('each', '', pg_temp.options(max_attempts => 2, base_delay => 0) || '{"whenExhausted": "skip"}'),
    pg_temp.step('list', '', pg_temp.options(max_attempts => 1)),
    pg_temp.map('listed', 'list'),
    pg_temp.step('gate', 'list', pg_temp.only_if('{"list": [1]}', 'skip-cascade')),
    pg_temp.step('strict', 'list', pg_temp.unless('{"list": ["forbidden"]}', 'fail')),
    pg_temp.step('left', 'gate'),
    pg_temp.step('right', 'gate', pg_temp.options(max_attempts => 1) || '{"whenExhausted": "skip-cascade"}'),
    pg_temp.step('join', 'left,right,each'),
    pg_temp.step('last', 'listed,each')
  )
);
-- Enough history that the planner has something to choose from.
select count(*) from pgflow.start_flows('plans', array(select '["old", 1]'::jsonb from generate_series(1, 200)));
select count(*) from pg_temp.claim('plans', 'list', 200);
select count(*) from pgflow.complete_tasks(
  (
    select jsonb_agg(jsonb_build_object('run_id', run_id, 'step_slug', step_slug, 'task_index', task_index, 'output', '{}'::jsonb))
    from pgflow.step_tasks
    where status = 'started'
  )
);
analyze pgflow.runs, pgflow.step_states, pgflow.step_tasks, pgflow.steps, pgflow.deps;

create function pg_temp.element(run_name text, step_slug text, task_index int default 0, more jsonb default '{}')
returns jsonb
language sql
as $$
  select jsonb_build_object('run_id', pg_temp.id(run_name), 'step_slug', step_slug, 'task_index', task_index) || more
$$;

-- Five runs end in every way there is; returns all that became of them.
create function pg_temp.endings(prefix text)
returns text
language plpgsql
as $$
declare
  whole text := prefix || ' whole';
  skipped text := prefix || ' skipped';
  broken text := prefix || ' broken';
  typed text := prefix || ' typed';
  refused text := prefix || ' refused';
  answers text[] := '{}';
  first_event bigint := (select coalesce(max(number), 0) from realtime.sent);
  archived bigint := (select count(*) from pg_temp.archived('plans'));
begin
  perform pg_temp.start('plans', run_name, '["x", "y", "z"]') from unnest(array[whole, skipped, broken, typed, refused]) as run_name;
  perform from pg_temp.claim('plans', 'each', 100);
  perform from pg_temp.claim('plans', 'list', 100);

  answers := answers || array(
    select status
    from pgflow.complete_tasks(
      jsonb_build_array(
        pg_temp.element(whole, 'list', 0, '{"output": [1, 2]}'),
        pg_temp.element(typed, 'list', 0, '{"output": {"no": "array"}}'),
        pg_temp.element(skipped, 'list', 0, '{"output": [2]}'),
        pg_temp.element(whole, 'each', 2, '{"output": "z"}'),
        pg_temp.element(refused, 'list', 0, '{"output": [1, "forbidden"]}'),
        pg_temp.element(whole, 'each', 0, '{"output": "x"}'),
        pg_temp.element(whole, 'each', 0, '{"output": "again"}'),
        pg_temp.element(typed, 'each', 0, '{"output": "kept"}')
      )
    )
  );
  answers := answers || array(
    select status
    from pgflow.fail_tasks(
      jsonb_build_array(
        pg_temp.element(broken, 'list', 0, '{"error_message": "broken"}'),
        pg_temp.element(skipped, 'each', 1, '{"error_message": "once"}'),
        pg_temp.element(whole, 'each', 1, '{"error_message": "once"}'),
        pg_temp.element(typed, 'each', 1, '{"error_message": "late"}')
      )
    )
  );
  perform from pg_temp.claim('plans', 'each', 100);
  answers := answers || array(
    select task.status from pgflow.fail_task(pg_temp.id(skipped), 'each', 1, 'twice') as task
    union all
    select task.status from pgflow.complete_task(pg_temp.id(whole), 'each', 1, '"y"') as task
    union all
    select task.status from pgflow.complete_task(pg_temp.id(skipped), 'each', 0, '"late"') as task
    union all
    select task.status from pgflow.fail_task(pg_temp.id(broken), 'each', 0, 'late') as task
  );
  perform pg_temp.work('plans', 'gate');
  perform pg_temp.spoil('plans', 'right', 'broken');
  perform pg_temp.work('plans', 'left');
  perform from pg_temp.claim('plans', 'listed', 100);
  perform pgflow.complete_tasks(
    (
      select jsonb_agg(jsonb_build_object('run_id', run_id, 'step_slug', step_slug, 'task_index', task_index, 'output', task_index))
      from pgflow.step_tasks
      where status = 'started'
        and step_slug = 'listed'
    )
  );
  perform from pg_temp.claim('plans', 'strict', 100);
  perform pgflow.complete_task(pg_temp.id(run_name), 'strict', 0, '1') from unnest(array[whole, skipped]) as run_name;
  perform from pg_temp.claim('plans', 'last', 100);
  perform pgflow.complete_task(pg_temp.id(run_name), 'last', 0, '2') from unnest(array[whole, skipped]) as run_name;

  return (
    select string_agg(line, e'\n' order by place, line)
    from (
      select 1, format('answers: %s', array_to_string(answers, ' '))
      union all
      select 2, format('%s: %s, %s', substr(run_name, length(prefix) + 2), pg_temp.run(run_name), pg_temp.steps(run_name))
      from unnest(array[whole, skipped, broken, typed, refused]) as run_name
      union all
      select
        3,
        format(
          '%s.%s: %s %s %s %s', substr(run_name, length(prefix) + 2), task.step_slug, task.task_index, task.status, task.output, task.error_message
        )
      from unnest(array[whole, skipped, broken, typed, refused]) as run_name
      inner join pgflow.step_tasks as task on task.run_id = pg_temp.id(run_name)
      union all
      select 4, format('output: %s', pg_temp.output(run_name)) from unnest(array[whole, skipped]) as run_name
      union all
      select 5, format('event %s of %s', sent.event, substr(run_name, length(prefix) + 2))
      from unnest(array[whole, skipped, broken, typed, refused]) as run_name
      inner join realtime.sent
        on sent.topic = 'pgflow:run:' || pg_temp.id(run_name)
        and sent.number > first_event
      union all
      select 6, format('archived: %s', (select count(*) from pg_temp.archived('plans')) - archived)
      union all
      select 7, format('message %s of task %s comes after that of the next task', task.message_id, task.task_index)
      from unnest(array[whole, skipped, broken, typed, refused]) as run_name
      inner join pgflow.step_tasks as task on task.run_id = pg_temp.id(run_name)
      inner join pgflow.step_tasks as next_task
        on (next_task.run_id, next_task.step_slug, next_task.task_index) = (task.run_id, task.step_slug, task.task_index + 1)
      where next_task.message_id <= task.message_id
      union all
      select 8, 'contradiction: ' || contradiction from pg_temp.contradictions('plans') as contradiction
    ) as lines (place, line)
  );
end
$$;

create temporary table ending (place int, mode text, settings text, outcome text);

create function pg_temp.try(place int, mode text, settings text)
returns void
language plpgsql
as $$
declare
  setting text;
begin
  perform set_config('plan_cache_mode', mode, true);

  foreach setting in array string_to_array(settings, ',')
  loop
    perform set_config(setting, 'off', true);
  end loop;

  -- Plans that were made under other settings are made anew.
  discard plans;
  insert into ending values (try.place, try.mode, try.settings, pg_temp.endings(format('%s %s', try.mode, try.settings)));

  foreach setting in array string_to_array(settings, ',')
  loop
    perform set_config(setting, 'on', true);
  end loop;

  perform set_config('plan_cache_mode', 'auto', true);
end
$$;

select pg_temp.try(1, 'auto', '');

select is(
  (select (string_to_array(outcome, e'\n'))[1:6] from ending where place = 1),
  array[
    'answers: completed failed completed completed completed completed ended completed failed retrying retrying ended '
    'failed completed skipped cancelled',
    'broken: failed, 9 left, each started, list failed, listed created, gate created, strict created, left created, '
    'right created, join created, last created',
    'refused: failed, 8 left, each started, list completed, listed created, gate created, strict failed, left created, '
    'right created, join created, last created',
    'skipped: completed, 0 left, each skipped (handler_failed), list completed, listed completed, gate skipped (condition_unmet), '
    'strict completed, left skipped (dependency_skipped), right skipped (dependency_skipped), join skipped (dependency_skipped), '
    'last completed',
    'typed: failed, 9 left, each started, list failed, listed created, gate created, strict created, left created, '
    'right created, join created, last created',
    'whole: completed, 0 left, each completed, list completed, listed completed, gate completed, strict completed, '
    'left completed, right skipped (handler_failed), join skipped (dependency_skipped), last completed'
  ],
  'runs end as they should'
);
select matches(
  (select outcome from ending where place = 1), e'\narchived: 30$', 'every message is archived once, and nothing contradicts the rules'
);

select pg_temp.try(1 + (row_number() over ())::int, mode, settings)
from unnest(array['force_custom_plan', 'force_generic_plan']) as mode
cross join unnest(
  array[
    '', 'enable_hashjoin', 'enable_mergejoin', 'enable_nestloop', 'enable_hashjoin,enable_mergejoin', 'enable_hashjoin,enable_nestloop',
    'enable_mergejoin,enable_nestloop', 'enable_hashagg,enable_sort', 'enable_seqscan', 'enable_indexscan,enable_bitmapscan,enable_indexonlyscan'
  ]
) as settings;

select is(
  outcome, (select first.outcome from ending as first where first.place = 1),
  format('and so they do with %s%s', mode, coalesce(' without ' || nullif(settings, ''), ''))
)
from ending
where place > 1
order by place;

select * from finish();
rollback;
