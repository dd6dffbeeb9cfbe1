-- A cascade that sets out from a step which has ended finds work of its dependents on their queues: all of it leaves.
begin;
\ir ../helpers.psql
select plan(14);

-- What the engine itself does with a step that is to be skipped.
create function pg_temp.force_skip(run_name text, step_slug text)
returns void
language plpgsql
as $$
declare
  followers pgflow.consequences;
begin
  followers := pgflow.end_steps(
    array[row(pg_temp.id(run_name), force_skip.step_slug, 'skip-cascade', 'handler_failed', null)::pgflow.step_ending]
  );
  perform pgflow.archive_messages(followers.leaving || pgflow.advance_runs(followers.run_ids, followers.step_slugs));
end
$$;

select pg_temp.compile(
  mode || '_gate', mode,
  jsonb_build_array(
    pg_temp.step('gate'), pg_temp.step('left', 'gate'), pg_temp.map('right', 'gate'),
    pg_temp.step('third', 'gate', pg_temp.options(start_delay => 3600)), pg_temp.step('join', 'left,right'), pg_temp.step('free')
  )
)
from unnest(array['step', 'flow']) as mode;

select pg_temp.start('step_gate', 'r');
select pg_temp.start('step_gate', 'other');
select pg_temp.work('step_gate', 'gate', '[1, 2, 3]') from generate_series(1, 2);
select count(*) from pg_temp.claim('step_gate', 'right', 1);
select is(
  (select jsonb_object_agg(waiting.queue_name, waiting.count) from (select queue_name, count(*) from pg_temp.messages('step_gate') group by queue_name) as waiting),
  '{"step_gate__left": 2, "step_gate__right": 6, "step_gate__third": 2, "step_gate__free": 2}',
  'work of two runs is queued, started and delayed on the queues of what is behind the gate'
);

select pg_temp.force_skip('r', 'gate');
select is(
  pg_temp.steps('r'),
  'gate completed, left skipped (dependency_skipped), right skipped (dependency_skipped), third skipped (dependency_skipped), '
  'join skipped (dependency_skipped), free started',
  'a gate that has completed stays completed, and all behind it is skipped'
);
select is(pg_temp.tasks('r', 'left'), 'skipped', 'a queued task is skipped');
select is(pg_temp.tasks('r', 'right'), 'skipped, skipped, skipped', 'so are a started one and its siblings');
select is(pg_temp.tasks('r', 'third'), 'skipped', 'and one that waits for its start delay');
select is_empty(
  $$
    select * from pg_temp.messages('step_gate')
    where (message ->> 'run_id')::uuid = pg_temp.id('r') and queue_name <> 'step_gate__free'
  $$,
  'every queue behind the gate is empty of the run'
);
select is(
  (
    select jsonb_object_agg(left_messages.queue_name, left_messages.count)
    from (
      select queue_name, count(*) from pg_temp.archived('step_gate') where (message ->> 'run_id')::uuid = pg_temp.id('r') group by queue_name
    ) as left_messages
  ),
  '{"step_gate__gate": 1, "step_gate__left": 1, "step_gate__right": 3, "step_gate__third": 1}',
  'each message is in the archive of its own queue, once'
);
select is(pg_temp.run('r'), 'started, 1 left', 'each skipped step counts once');
select is(pg_temp.steps('other'), 'gate completed, left started, right started, third started, join created, free started', 'another run is as it was');
select pg_temp.is_sound('step_gate', 'all of it is sound');

select pg_temp.work('step_gate', 'free');
select is(pg_temp.run('r'), 'completed, 0 left', 'the run goes on to its end');

-- On one queue.

select pg_temp.start('flow_gate', 'plain');
select pg_temp.work('flow_gate', null, '[1, 2]');
select pg_temp.force_skip('plain', 'gate');
select is(
  (select array_agg(message ->> 'step_slug') from pg_temp.messages('flow_gate')), array['free'], 'in flow mode the work of another step stays on the queue'
);
select is((select count(*) from pg_temp.archived('flow_gate')), 5::bigint, 'and the rest is in its archive');
select pg_temp.is_sound('flow_gate', 'all of that is sound');

select * from finish();
rollback;
