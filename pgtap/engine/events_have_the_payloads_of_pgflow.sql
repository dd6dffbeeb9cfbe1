begin;
\ir ../helpers.psql
\ir ../recorded_events.psql
select plan(25);

select pg_temp.compile(
  'f', 'step',
  jsonb_build_array(
    pg_temp.step('single', '', pg_temp.options(max_attempts => 2, base_delay => 0)),
    pg_temp.map('many', 'single'),
    pg_temp.map('echo', 'single'),
    pg_temp.step('unmet', '', pg_temp.only_if('{"never": true}', 'skip-cascade')),
    pg_temp.step('cascaded', 'unmet'),
    pg_temp.step('broken', '', pg_temp.options(max_attempts => 1) || '{"whenExhausted": "skip"}')
  )
);
select pg_temp.compile('g', 'flow', jsonb_build_array(pg_temp.step('fatal', '', pg_temp.options(max_attempts => 1)), pg_temp.step('other')));
select pg_temp.compile('h', 'flow', jsonb_build_array(pg_temp.step('gate', '', pg_temp.only_if('{"ok": true}', 'fail'))));
select pg_temp.compile('e', 'flow', jsonb_build_array(pg_temp.map('empty')));

select pg_temp.start('f', 'f', '{"in": [1]}');
select pg_temp.spoil('f', 'single', 'retried');
select pg_temp.work('f', 'single', '["x", "y"]');
select pg_temp.spoil('f', 'broken', 'boom');
select pg_temp.drain('f', '{"many": {"n": 1}}');
select pg_temp.start('g', 'g');
select count(*) from pg_temp.claim('g', null, 2);
select status from pgflow.fail_task(pg_temp.id('g'), 'fatal', 0, 'no way');
select pg_temp.start('h', 'h');
select pg_temp.start('e', 'e', '[]');

create temporary table step_row as
select state.*, state.step_slug as slug
from pgflow.step_states as state;

-- Runs.

select is(
  pg_temp.payload('f', 'run:started'),
  (
    select jsonb_build_object(
      'event_type', 'run:started', 'run_id', run_id, 'flow_slug', 'f', 'input', '{"in": [1]}'::jsonb, 'status', 'started',
      'remaining_steps', 6, 'started_at', started_at
    )
    from pgflow.runs
    where run_id = pg_temp.id('f')
  ),
  'run:started, with the count of all steps'
);
select is(
  pg_temp.payload('f', 'run:completed'),
  (
    select jsonb_build_object(
      'event_type', 'run:completed', 'run_id', run_id, 'flow_slug', 'f', 'status', 'completed',
      'output', '{"many": [{"n": 1}, {"n": 1}], "echo": ["x", "y"]}'::jsonb, 'completed_at', completed_at
    )
    from pgflow.runs
    where run_id = pg_temp.id('f')
  ),
  'run:completed'
);
select is(
  pg_temp.payload('g', 'run:failed'),
  (
    select jsonb_build_object(
      'event_type', 'run:failed', 'run_id', run_id, 'flow_slug', 'g', 'status', 'failed', 'error_message', 'no way', 'failed_at', failed_at
    )
    from pgflow.runs
    where run_id = pg_temp.id('g')
  ),
  'run:failed, after a handler'
);
select is(
  pg_temp.payload('h', 'run:failed'),
  (
    select jsonb_build_object(
      'event_type', 'run:failed', 'run_id', run_id, 'flow_slug', 'h', 'status', 'failed', 'error_message', 'Condition not met', 'failed_at', failed_at
    )
    from pgflow.runs
    where run_id = pg_temp.id('h')
  ),
  'run:failed, after a condition'
);

-- Steps.

select is(
  pg_temp.payload('f', 'step:single:started') - 'started_at',
  jsonb_build_object(
    'event_type', 'step:started', 'run_id', pg_temp.id('f'), 'step_slug', 'single', 'status', 'started', 'remaining_tasks', 1, 'remaining_deps', 0
  ),
  'step:started of a single step'
);
select is(
  pg_temp.payload('f', 'step:many:started'),
  (
    select jsonb_build_object(
      'event_type', 'step:started', 'run_id', run_id, 'step_slug', 'many', 'status', 'started', 'started_at', started_at,
      'remaining_tasks', 2, 'remaining_deps', 0
    )
    from step_row
    where (run_id, step_slug) = (pg_temp.id('f'), 'many')
  ),
  'step:started of a map'
);
select is(
  pg_temp.payload('f', 'step:single:completed'),
  (
    select jsonb_build_object(
      'event_type', 'step:completed', 'run_id', run_id, 'step_slug', 'single', 'status', 'completed', 'output', '["x", "y"]'::jsonb,
      'completed_at', completed_at
    )
    from step_row
    where (run_id, step_slug) = (pg_temp.id('f'), 'single')
  ),
  'step:completed of a single step'
);
select is(
  pg_temp.payload('f', 'step:many:completed'),
  (
    select jsonb_build_object(
      'event_type', 'step:completed', 'run_id', run_id, 'step_slug', 'many', 'status', 'completed', 'output', '[{"n": 1}, {"n": 1}]'::jsonb,
      'completed_at', completed_at
    )
    from step_row
    where (run_id, step_slug) = (pg_temp.id('f'), 'many')
  ),
  'step:completed of a map, once for all its tasks'
);
select is(
  pg_temp.payload('e', 'step:empty:completed'),
  (
    select jsonb_build_object(
      'event_type', 'step:completed', 'run_id', run_id, 'step_slug', 'empty', 'status', 'completed', 'output', '[]'::jsonb,
      'completed_at', completed_at, 'started_at', started_at, 'remaining_tasks', 0, 'remaining_deps', 0
    )
    from step_row
    where (run_id, step_slug) = (pg_temp.id('e'), 'empty')
  ),
  'step:completed of an empty map has what its start would have told'
);
select is(
  pg_temp.payload('g', 'step:fatal:failed'),
  (
    select jsonb_build_object(
      'event_type', 'step:failed', 'run_id', run_id, 'step_slug', 'fatal', 'status', 'failed', 'error_message', 'no way', 'failed_at', failed_at
    )
    from step_row
    where (run_id, step_slug) = (pg_temp.id('g'), 'fatal')
  ),
  'step:failed, after a handler'
);
select is(
  pg_temp.payload('h', 'step:gate:failed') ->> 'error_message', 'Condition not met', 'step:failed, after a condition'
);
select is(
  pg_temp.payload('f', 'step:unmet:skipped'),
  (
    select jsonb_build_object(
      'event_type', 'step:skipped', 'run_id', run_id, 'flow_slug', 'f', 'step_slug', 'unmet', 'status', 'skipped',
      'skip_reason', 'condition_unmet', 'skipped_at', skipped_at
    )
    from step_row
    where (run_id, step_slug) = (pg_temp.id('f'), 'unmet')
  ),
  'step:skipped for a condition'
);
select is(
  pg_temp.payload('f', 'step:cascaded:skipped'),
  (
    select jsonb_build_object(
      'event_type', 'step:skipped', 'run_id', run_id, 'flow_slug', 'f', 'step_slug', 'cascaded', 'status', 'skipped',
      'skip_reason', 'dependency_skipped', 'skipped_at', skipped_at
    )
    from step_row
    where (run_id, step_slug) = (pg_temp.id('f'), 'cascaded')
  ),
  'step:skipped by a cascade'
);
select is(
  pg_temp.payload('f', 'step:broken:skipped'),
  (
    select jsonb_build_object(
      'event_type', 'step:skipped', 'run_id', run_id, 'flow_slug', 'f', 'step_slug', 'broken', 'status', 'skipped',
      'skip_reason', 'handler_failed', 'error_message', 'boom', 'skipped_at', skipped_at
    )
    from step_row
    where (run_id, step_slug) = (pg_temp.id('f'), 'broken')
  ),
  'step:skipped for a handler that failed, with the message'
);

-- All of them.

select is((select array_agg(distinct private) from realtime.sent), array[false], 'none is private');
select is_empty(
  $$ select * from realtime.sent where topic is distinct from 'pgflow:run:' || (payload ->> 'run_id') $$, 'each goes to the topic of its run'
);
select is_empty(
  $$
    select *
    from realtime.sent
    where event is distinct from
      case
        when payload ? 'step_slug' then format('step:%s:%s', payload ->> 'step_slug', payload ->> 'status')
        else format('run:%s', payload ->> 'status')
      end
  $$,
  'each is named by its run or step and the status'
);
select is_empty(
  $$ select topic, event from realtime.sent group by topic, event having count(*) > 1 $$, 'none is sent twice, not for a retry and not for each task'
);
select is(
  (select array_agg(event order by event) from realtime.sent where topic = 'pgflow:run:' || pg_temp.id('g')),
  array['run:failed', 'run:started', 'step:fatal:failed', 'step:fatal:started', 'step:other:started'],
  'cancelled tasks send nothing'
);

-- Odd values.

select pg_temp.start('g', 'odd', 'null');
select count(*) from pg_temp.claim('g', null, 2);
select status from pgflow.complete_task(pg_temp.id('odd'), 'other', 0, null);
select is(
  pg_temp.payload('odd', 'run:started') -> 'input', 'null'::jsonb, 'an input that is JSON null is there'
);
select is(
  pg_temp.payload('odd', 'step:other:completed') -> 'output', 'null'::jsonb, 'and so is an output that is NULL'
);
select status from pgflow.fail_task(pg_temp.id('odd'), 'fatal', 0, null);
select is(
  (select array_agg(key order by key collate "C") from jsonb_object_keys(pg_temp.payload('odd', 'run:failed')) as key),
  array['event_type', 'failed_at', 'flow_slug', 'run_id', 'status'],
  'run:failed has no error message where there is none'
);
select is(
  (select array_agg(key order by key collate "C") from jsonb_object_keys(pg_temp.payload('odd', 'step:fatal:failed')) as key),
  array['error_message', 'event_type', 'failed_at', 'run_id', 'status', 'step_slug'],
  'step:failed always has its key'
);

-- A type violation.

select pg_temp.start('f', 'typed');
select pg_temp.work('f', 'single', '7');
select is(
  pg_temp.payload('typed', 'step:single:failed') ->> 'error_message',
  '[TYPE_VIOLATION] Map step many expects array input but dependency single produced number',
  'step:failed for a type violation'
);
select is(
  pg_temp.payload('typed', 'run:failed') ->> 'error_message',
  '[TYPE_VIOLATION] Map step many expects array input but dependency single produced number',
  'and run:failed'
);

select * from finish();
rollback;
