begin;
\ir ../helpers.psql
select plan(24);

select pg_temp.compile(
  'batch', 'step',
  jsonb_build_array(
    pg_temp.map('m', '', pg_temp.options(base_delay => 60)),
    pg_temp.map('s', '', pg_temp.options(max_attempts => 1) || '{"whenExhausted": "skip"}'),
    pg_temp.step('f', '', pg_temp.options(max_attempts => 1))
  )
);
select pg_temp.compile('other', 'flow', jsonb_build_array(pg_temp.step('x'), pg_temp.step('y', 'x')));

create function pg_temp.result(run_name text, step_slug text, task_index int default 0, more jsonb default '{}')
returns jsonb
language sql
as $$
  select jsonb_build_object('run_id', pg_temp.id(run_name), 'step_slug', step_slug, 'task_index', task_index) || more
$$;

-- Many kinds of elements in one call, over two flows and three runs.

select pg_temp.start('batch', 'r1', '[1, 2, 3, 4, 5, 6]'), pg_temp.start('batch', 'r2', '[1, 2]'), pg_temp.start('other', 'r3');
select count(*) from pg_temp.claim('batch', 'm', 7);
select count(*) from pg_temp.claim('batch', 'f', 2);
select count(*) from pg_temp.claim('other');
select is((select status from pgflow.complete_task(pg_temp.id('r1'), 'm', 4, '"before"')), 'completed', 'one task is done already');
select is((select status from pgflow.fail_task(pg_temp.id('r1'), 'm', 5, 'before')), 'queued', 'one waits for a retry');
select is((select status from pgflow.fail_task(pg_temp.id('r2'), 'f', 0, 'before')), 'failed', 'one run is failed');

create temporary table answer as
select *
from pgflow.complete_tasks(
  jsonb_build_array(
    pg_temp.result('r1', 'm', 2, '{"output": {"n": 2}, "attempt": 1}'),
    pg_temp.result('r3', 'x', 0, '{"output": [3]}'),
    pg_temp.result('r1', 'm', 0, '{"output": null, "attempt": null}'),
    pg_temp.result('r1', 'm', 2, '{"output": "repeated", "attempt": 1}'),
    pg_temp.result('r1', 'm', 1, '{"output": 1, "attempt": 2}'),
    pg_temp.result('r1', 'm', 4, '{"output": "late"}'),
    pg_temp.result('r1', 'm', 5, '{"output": "late"}'),
    pg_temp.result('nobody', 'm', 0, '{"output": 1}'),
    pg_temp.result('r1', 'M', 0, '{"output": 1}'),
    pg_temp.result('r1', 'm', 99, '{"output": 1}'),
    pg_temp.result('r2', 'm', 0, '{"output": "the run has failed"}'),
    pg_temp.result('r1', 's', 0, '{"output": "never claimed"}')
  )
)
with ordinality;
select results_eq(
  'select ordinality, run_id, step_slug, task_index, status from answer order by ordinality',
  $$
    values
    (1::bigint, pg_temp.id('r1'), 'm', 2, 'completed'),
    (2, pg_temp.id('r3'), 'x', 0, 'completed'),
    (3, pg_temp.id('r1'), 'm', 0, 'completed'),
    (4, pg_temp.id('r1'), 'm', 2, 'ended'),
    (5, pg_temp.id('r1'), 'm', 1, 'superseded'),
    (6, pg_temp.id('r1'), 'm', 4, 'ended'),
    (7, pg_temp.id('r1'), 'm', 5, 'superseded'),
    (8, pg_temp.id('nobody'), 'm', 0, 'unknown'),
    (9, pg_temp.id('r1'), 'M', 0, 'unknown'),
    (10, pg_temp.id('r1'), 'm', 99, 'unknown'),
    (11, pg_temp.id('r2'), 'm', 0, 'ended'),
    (12, pg_temp.id('r1'), 's', 0, 'superseded')
  $$,
  'each element has its answer, in order'
);
select results_eq(
  $$ select task_index, status, output from pgflow.step_tasks where (run_id, step_slug) = (pg_temp.id('r1'), 'm') order by 1 $$,
  $$
    values
    (0, 'completed', 'null'::jsonb), (1, 'started', null), (2, 'completed', '{"n": 2}'), (3, 'started', null),
    (4, 'completed', '"before"'), (5, 'queued', null)
  $$,
  'of a repeated task the first result counts, the others change what they say'
);
select is(
  (select remaining_tasks from pgflow.step_states where (run_id, step_slug) = (pg_temp.id('r1'), 'm')), 3, 'the step counts each task once'
);
select is(pg_temp.steps('r3'), 'x completed, y started', 'another flow''s run goes on by the same call');
select pg_temp.is_sound('batch', 'the flow is sound');
select pg_temp.is_sound('other', 'so is the other');

-- Failures.

select count(*) from pg_temp.claim('batch', 's', 6);
truncate answer;
insert into answer
select *
from pgflow.fail_tasks(
  jsonb_build_array(
    pg_temp.result('r1', 'm', 1, '{"error_message": "one", "attempt": 1}'),
    pg_temp.result('r1', 'm', 1, '{"error_message": "two", "attempt": 1}'),
    pg_temp.result('r1', 'm', 3, '{"error_message": null}'),
    pg_temp.result('r1', 's', 2, '{"error_message": "skips"}'),
    pg_temp.result('r1', 's', 2, '{"error_message": "skips again"}'),
    pg_temp.result('r1', 'm', 0, '{"error_message": "late"}'),
    pg_temp.result('r1', 'm', 1, '{"error_message": "three", "attempt": 2}'),
    pg_temp.result('r2', 'f', 0, '{"error_message": "late"}'),
    pg_temp.result('r1', 'q')
  )
)
with ordinality;
select results_eq(
  'select run_id, step_slug, task_index, status from answer order by ordinality',
  $$
    values
    (pg_temp.id('r1'), 'm', 1, 'retrying'),
    (pg_temp.id('r1'), 'm', 1, 'superseded'),
    (pg_temp.id('r1'), 'm', 3, 'retrying'),
    (pg_temp.id('r1'), 's', 2, 'skipped'),
    (pg_temp.id('r1'), 's', 2, 'ended'),
    (pg_temp.id('r1'), 'm', 0, 'ended'),
    (pg_temp.id('r1'), 'm', 1, 'superseded'),
    (pg_temp.id('r2'), 'f', 0, 'ended'),
    (pg_temp.id('r1'), 'q', 0, 'unknown')
  $$,
  'fail_tasks answers each element in order too'
);
select results_eq(
  $$ select status, attempts_count, error_message from pgflow.step_tasks where (run_id, step_slug, task_index) = (pg_temp.id('r1'), 'm', 1) $$,
  $$ values ('queued', 1, 'one') $$,
  'the first failure counts, and one attempt'
);
select is(pg_temp.tasks('r1', 's'), 'skipped, skipped, failed, skipped, skipped, skipped', 'a skip takes the siblings with it');
select is(
  (select error_message from pgflow.step_states where (run_id, step_slug) = (pg_temp.id('r1'), 's')), 'skips', 'with the first message'
);
select pg_temp.is_sound('batch', 'the flow is sound');

-- A task that goes back for a retry while a sibling ends its step or run: nothing of it may stay.

select pg_temp.compile(
  'torn', 'step',
  jsonb_build_array(
    pg_temp.map('m', '', pg_temp.options(max_attempts => 2, base_delay => 60) || '{"whenExhausted": "skip"}'), pg_temp.step('f', '', pg_temp.options(max_attempts => 1))
  )
);
select pg_temp.start('torn', 't', '[1, 2, 3]');
select count(*) from pg_temp.claim('torn', 'm', 3);
update pgflow.step_tasks set attempts_count = 2 where run_id = pg_temp.id('t') and step_slug = 'm' and task_index = 1;
select results_eq(
  $$
    select task_index, status
    from pgflow.fail_tasks(
      jsonb_build_array(
        pg_temp.result('t', 'm', 1, '{"error_message": "exhausted"}'), pg_temp.result('t', 'm', 0, '{"error_message": "retry"}')
      )
    )
  $$,
  $$ values (1, 'skipped'), (0, 'ended') $$,
  'a task is not said to be retried when its step was skipped in the same call'
);
select is(pg_temp.tasks('t', 'm'), 'skipped, failed, skipped', 'it is skipped');
select is((select count(*) from pg_temp.messages('torn')), 1::bigint, 'and its message is gone');
select pg_temp.is_sound('torn', 'the flow is sound');

-- Several steps of one run fail in one call.

select pg_temp.compile(
  'twice', 'step',
  jsonb_build_array(pg_temp.step('a', '', pg_temp.options(max_attempts => 1)), pg_temp.step('b', '', pg_temp.options(max_attempts => 1)), pg_temp.step('c'))
);
select pg_temp.start('twice', 'w');
select pg_temp.take('twice', 'a'), pg_temp.take('twice', 'b'), pg_temp.take('twice', 'c');
select is(
  (
    select array_agg(status order by step_slug)
    from pgflow.fail_tasks(
      jsonb_build_array(pg_temp.result('w', 'b', 0, '{"error_message": "b"}'), pg_temp.result('w', 'a', 0, '{"error_message": "a"}'))
    )
  ),
  array['failed', 'failed'],
  'two steps can fail in one call'
);
select is(pg_temp.run('w'), 'failed, 3 left', 'the run fails once');
select pg_temp.nothing_left('twice', 'nothing is left of it');

-- All tasks of a map and of its sibling in one call complete the run.

select pg_temp.compile('whole', 'step', jsonb_build_array(pg_temp.map('m'), pg_temp.step('s'), pg_temp.step('end', 's,m')));
select pg_temp.start('whole', 'h', '[1, 2]');
select count(*) from pg_temp.claim('whole', 'm', 2);
select pg_temp.take('whole', 's');
select is(
  (
    select array_agg(distinct status)
    from pgflow.complete_tasks(
      jsonb_build_array(
        pg_temp.result('h', 's', 0, '{"output": "s"}'), pg_temp.result('h', 'm', 1, '{"output": 1}'), pg_temp.result('h', 'm', 0, '{"output": 0}')
      )
    )
  ),
  array['completed'],
  'several steps can complete in one call'
);
select is(pg_temp.steps('h'), 'm completed, s completed, end started', 'and start what waited for both');

-- No results.

select is_empty($$ select * from pgflow.complete_tasks('[]') union all select * from pgflow.fail_tasks('[]') $$, 'no results: no rows');

select * from finish();
rollback;
