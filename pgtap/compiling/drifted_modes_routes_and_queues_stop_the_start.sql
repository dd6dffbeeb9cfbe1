begin;
\ir helpers.psql
select plan(18);

select pg_temp.compile('Plain', 'flow', jsonb_build_array(pg_temp.step('a'), pg_temp.step('b')));
select pg_temp.compile('steps', 'step', jsonb_build_array(pg_temp.step('a'), pg_temp.step('b')));
select pg_temp.start('Plain', 'one');
select pg_temp.start('steps', 'two');
select pg_temp.world() as world \gset

create function pg_temp.start_up(flow_slug text, queue_mode text, allow_data_loss boolean default false)
returns text
language sql
as $$
  select format(
    'select pgflow.ensure_flow_compiled(%L, pg_temp.shape(pg_temp.step(%L), pg_temp.step(%L)), %L, %L) ->> %L',
    start_up.flow_slug, 'a', 'b', start_up.allow_data_loss, start_up.queue_mode, 'status'
  )
$$;

-- How a start ends after a change, which is undone.
create function pg_temp.start_after(change text, flow_slug text, queue_mode text)
returns text
language sql
as $$
  select pg_temp.after(
    start_after.change,
    format(
      'select concat_ws('' '', sqlstate, message) from pg_temp.refusal(%L)',
      pg_temp.start_up(start_after.flow_slug, start_after.queue_mode)
    )
  )
$$;

-- The mode.

select results_eq(
  $$ select * from pg_temp.refusal(pg_temp.start_up('Plain', 'step')) $$,
  $$
    values (
      'PF007',
      'The routing of flow "Plain" is not what was compiled: Queue mode: the database has "flow", the call has "step".',
      'Queue mode: persisted "flow", given "step". '
      'Step "a" at index 0: persisted "plain", derived "plain__a". '
      'Step "b" at index 1: persisted "plain", derived "plain__b".',
      'Another queue mode or other routes need a new flow slug. A queue that is gone or was made again: '
      'select * from pgflow.repair_queues(''Plain''). Where data may be lost, pass allow_data_loss.'
    )
  $$,
  'a flow-mode flow does not start in step mode; each step is listed with both routes'
);
select throws_ok(
  pg_temp.start_up('steps', 'flow'), 'PF007', null, 'a step-mode flow does not start in flow mode'
);
select throws_ok(
  $$ select pgflow.ensure_flow_compiled('steps', pg_temp.shape(pg_temp.step('a'), pg_temp.step('b'))) $$,
  'PF007', null, 'nor when a client of pgflow 0.14 starts it, which knows of no modes'
);

-- Routes, owner rows and queues.

select is(
  pg_temp.start_after(damage.change, damage.flow_slug, damage.queue_mode),
  format('PF007 The routing of flow "%s" is not what was compiled: %s', damage.flow_slug, damage.fault),
  damage.promise
)
from (
  values
  (
    'update pgflow.steps set queue_name = ''steps__a'' where queue_name = ''steps__b''', 'steps', 'step',
    'Route of step "b" at index 1: persisted "steps__a", derived "steps__b".',
    'a route that was edited by hand stops the start'
  ),
  (
    'update pgflow.steps set queue_name = ''steps__a'' where flow_slug = ''Plain'' and step_slug = ''b''',
    'Plain', 'flow',
    'Route of step "b" at index 1: persisted "steps__a", derived "plain".',
    'in flow mode too'
  ),
  (
    'update pgflow.queues set flow_slug = ''Plain'' where queue_name = ''steps__b''', 'steps', 'step',
    'Queue "steps__b" belongs to step "b" of flow "Plain".',
    'an owner row that was edited by hand stops the start'
  ),
  (
    'select pgmq.drop_queue(''steps__a'')', 'steps', 'step',
    'Queue "steps__a" is not listed by PGMQ.',
    'a queue that was dropped outside stops the start, which names queue and flow'
  ),
  (
    'select pgmq.drop_queue(''plain'')', 'Plain', 'flow',
    'Queue "plain" is not listed by PGMQ.',
    'in flow mode too'
  ),
  (
    'drop table pgmq.q_steps__b', 'steps', 'step',
    'Table pgmq.q_steps__b is gone.',
    'a lost table stops the start'
  )
) as damage (change, flow_slug, queue_mode, fault, promise);
select matches(
  pg_temp.start_after(format('select pg_temp.make_again(%L)', again.queue_name), again.flow_slug, again.queue_mode),
  format('^PF007 .*Queue "%s" was made again: ', again.queue_name),
  again.promise
)
from (
  values
  ('steps__b', 'steps', 'step', 'a queue that somebody made again stops the start'),
  ('plain', 'Plain', 'flow', 'in flow mode too')
) as again (queue_name, flow_slug, queue_mode, promise);
select results_eq(
  $outer$
    select pg_temp.after(
      'update pgflow.steps set queue_name = ''steps__a'' where queue_name = ''steps__b''',
      $$ select detail from pg_temp.refusal(pg_temp.start_up('steps', 'step')) $$
    )
  $outer$,
  $$
    values (
      'Queue mode: persisted "step", given "step". '
      'Step "a" at index 0: persisted "steps__a", derived "steps__a". '
      'Step "b" at index 1: persisted "steps__a", derived "steps__b".'
    )
  $$,
  'each step is listed with the persisted and the derived route'
);
select is(pg_temp.world(), :'world', 'nothing was changed by any of this');

-- The ways out.

select is(
  pg_temp.after(
    'select pg_temp.make_again(''plain''); select pgflow.repair_queues(''Plain'')', pg_temp.start_up('Plain', 'flow')
  ),
  'verified', 'after a repair the flow starts again'
);
select is(
  pg_temp.after('select pgmq.drop_queue(''steps__a'')', pg_temp.start_up('steps', 'step', true)),
  'recompiled', 'where data may be lost, a lost queue leads to recompilation'
);
select is(
  pg_temp.after(
    'select pgmq.drop_queue(''steps__a''); ' || pg_temp.start_up('steps', 'step', true),
    'select count(*) from pgflow.check_integrity(''steps'')'
  ),
  '0', 'after which all is sound'
);
select pg_temp.make_again('steps__a');
select from pgmq.send('steps__a', '{"of": "somebody"}');
select throws_ok(
  pg_temp.start_up('steps', 'step', true),
  'PF007', 'Queue "steps__a" of flow "steps" is not the one that was made for it.',
  'a queue that somebody made again is not dropped by a recompilation'
);
select is((select count(*) from pgmq.q_steps__a), 1::bigint, 'its messages are there');

select * from finish();
rollback;
