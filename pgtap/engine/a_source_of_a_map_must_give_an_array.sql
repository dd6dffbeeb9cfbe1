begin;
\ir ../helpers.psql
select plan(37);

-- Whatever whenExhausted says, and however many attempts are left.

select pg_temp.compile(
  'typed_' || replace(exhausted, '-', '_'), 'step',
  jsonb_build_array(
    pg_temp.step('s', '', pg_temp.options(max_attempts => 5) || jsonb_build_object('whenExhausted', exhausted)),
    pg_temp.step('between', 's'),
    pg_temp.map('m', 's'),
    pg_temp.map('n', 's'),
    pg_temp.step('other')
  )
)
from unnest(array['fail', 'skip', 'skip-cascade']) as exhausted;

create temporary table wrong as
select
  'typed_' || replace(exhausted, '-', '_') as flow_slug,
  exhausted || ' ' || coalesce(given::text, 'NULL') as name,
  given::jsonb as given,
  kind
from unnest(array['fail', 'skip', 'skip-cascade']) as exhausted
cross join (
  values ('{"a": [1]}', 'object'), ('null', 'null'), (null, 'null'), ('"[1]"', 'string'), ('5', 'number'), ('true', 'boolean')
) as output (given, kind);

select pg_temp.start(flow_slug, name) from wrong;
select count(*) from wrong cross join lateral pg_temp.claim(wrong.flow_slug, 's', 100);

select is(
  (
    select array_agg((task.status, task.error_message, task.output is not distinct from wrong.given)::text order by wrong.name)
    from wrong
    cross join lateral pgflow.complete_task(pg_temp.id(wrong.name), 's', 0, wrong.given) as task
  ),
  (
    select array_agg(('failed', format('[TYPE_VIOLATION] Produced %s instead of array', kind), true)::text order by wrong.name)
    from wrong
  ),
  'a source of a map that gives anything but an array fails its task, which keeps the output'
);
select is(
  (
    select array_agg((state.status, state.error_message, state.output)::text order by wrong.name)
    from wrong
    inner join pgflow.step_states as state on (state.run_id, state.step_slug) = (pg_temp.id(wrong.name), 's')
  ),
  (
    select
      array_agg(
        ('failed', format('[TYPE_VIOLATION] Map step m expects array input but dependency s produced %s', kind), null::jsonb)::text
        order by wrong.name
      )
    from wrong
  ),
  'it fails its step, naming the map and the kind of the output'
);
select is(pg_temp.run(name), 'failed, 5 left', 'it fails the run, with whenExhausted and output: ' || name) from wrong;
select is(
  (select array_agg(distinct pg_temp.steps(name)) from wrong),
  array['s failed, between created, m created, n created, other started'],
  'no dependent starts'
);
select is(
  (select array_agg(distinct pg_temp.tasks(name, 'other')) from wrong), array['cancelled'], 'tasks of other steps are cancelled'
);
select is(
  (select bool_and(attempts_count = 1 and failed_at is not null) from pgflow.step_tasks where step_slug = 's'), true, 'no retry is tried'
);
select pg_temp.nothing_left('typed_fail', 'nothing is left on any queue, whenExhausted fail');
select pg_temp.nothing_left('typed_skip', 'nothing is left on any queue, whenExhausted skip');
select pg_temp.nothing_left('typed_skip_cascade', 'nothing is left on any queue, whenExhausted skip-cascade');

-- What is no violation.

select pg_temp.start('typed_fail', 'right');
select pg_temp.work('typed_fail', 's', '[]');
select is(
  pg_temp.steps('right'), 's completed, between started, m completed, n completed, other started', 'an empty array is an array'
);
select pg_temp.compile(
  'fine', 'step', jsonb_build_array(pg_temp.map('m'), pg_temp.map('n', 'm'), pg_temp.step('s', 'n'), pg_temp.step('t', 's'))
);
select pg_temp.start('fine', 'fine', '[1]');
select pg_temp.work('fine', 'm', '{"an": "object"}');
select pg_temp.work('fine', 'n', 'null');
select pg_temp.work('fine', 's', '"text"');
select pg_temp.work('fine', 't', '5');
select is(pg_temp.run('fine'), 'completed, 0 left', 'tasks of a map may give what they like, so may a step without a map behind it');
select pg_temp.nothing_left('fine', 'nothing is left of it');

-- By complete_tasks, together with results that are right.

select pg_temp.start('typed_skip', 'wrong one'), pg_temp.start('typed_skip', 'right one');
select count(*) from pg_temp.claim('typed_skip', 's', 10);
select count(*) from pg_temp.claim('typed_skip', 'other', 10);
select results_eq(
  $$
    select run_id, step_slug, status
    from pgflow.complete_tasks(
      jsonb_build_array(
        jsonb_build_object('run_id', pg_temp.id('wrong one'), 'step_slug', 's', 'task_index', 0, 'output', '{}'::jsonb),
        jsonb_build_object('run_id', pg_temp.id('wrong one'), 'step_slug', 'other', 'task_index', 0, 'output', '{}'::jsonb),
        jsonb_build_object('run_id', pg_temp.id('right one'), 'step_slug', 's', 'task_index', 0, 'output', '[1]'::jsonb)
      )
    )
  $$,
  $$
    values
    (pg_temp.id('wrong one'), 's', 'failed'),
    (pg_temp.id('wrong one'), 'other', 'completed'),
    (pg_temp.id('right one'), 's', 'completed')
  $$,
  'in a batch each result is judged by itself'
);
select is(
  pg_temp.steps('wrong one'), 's failed, between created, m created, n created, other completed', 'one run fails, what it achieved is kept'
);
select is(
  pg_temp.steps('right one'), 's completed, between started, m started, n started, other started', 'the other goes on'
);
select is(pg_temp.run('wrong one'), 'failed, 4 left', 'the completed step of the failed run was counted');
select is(pg_temp.drain('typed_skip') > 0, true, 'what goes on can be worked on');

-- A late violation changes nothing.

select pg_temp.picture('typed_skip') as before \gset
select is((select status from pgflow.complete_task(pg_temp.id('wrong one'), 's', 0, '[1]')), 'failed', 'a failed task stays failed');
select is((select status from pgflow.complete_task(pg_temp.id('right one'), 's', 0, '{}')), 'completed', 'a completed one stays completed');
select is(pg_temp.picture('typed_skip'), :'before', 'a late result changes nothing');

select * from finish();
rollback;
