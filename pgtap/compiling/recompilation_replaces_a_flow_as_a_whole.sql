begin;
\ir helpers.psql
select plan(30);

select pg_temp.compile(
  'f',
  'step',
  jsonb_build_array(pg_temp.step('one'), pg_temp.map('many', 'one')),
  '{"maxAttempts": 9}'
);
select pg_temp.compile('other', 'flow', jsonb_build_array(pg_temp.step('a')));
select pg_temp.start('f', 'run');
select pg_temp.start('other', 'bystander');
select pg_temp.work('f', 'one', '[1, 2]');
select from pg_temp.take('f', 'many');
insert into pgflow.workers (worker_id, queue_name, function_name) values (pg_temp.id('poller'), 'F__ONE', 'poller');
insert into pgflow.workers (worker_id, queue_name, function_name, stop_reason)
values (pg_temp.id('told'), 'f__one', 'poller', 'told before');
create temporary table before on commit drop as
select
  (pg_temp.flow('f')).generation as generation,
  pg_temp.picture('other') as other;
select is(pg_temp.tasks('run', 'many'), 'started, queued', 'the flow has work in progress');

-- A preflight that fails leaves everything.

select pgmq.create('f__two');
select pg_temp.world() as world \gset
select throws_ok(
  $$ select pgflow.ensure_flow_compiled('f', pg_temp.shape(pg_temp.step('one'), pg_temp.step('two')), true, 'step') $$,
  'PF004', 'Queue "f__two", which flow "f" needs, exists already and belongs to no flow.',
  'a recompilation that needs a foreign queue is refused'
);
select throws_ok(
  format(
    'select pgflow.ensure_flow_compiled(%L, pg_temp.shape(pg_temp.step(%L), pg_temp.step(%L)), true, %L)',
    'f',
    'x',
    'X',
    'step'
  ),
  'PF003', null, 'so is one whose steps fit no names'
);
select is(pg_temp.world(), :'world', 'the old definition, its runs, tasks, queues and workers are as they were');
select is(
  (select message ->> 'step_slug' from pgmq.read('f__many', 0, 1)), 'many', 'and so are its messages'
);
select from pgmq.drop_queue('f__two');

-- Without permission nothing is lost.

select is(
  pg_temp.status('f', pg_temp.shape(pg_temp.step('one')), 'step'),
  'mismatch',
  'without permission a difference is only told'
);
select is(pg_temp.tasks('run', 'many'), 'started, queued', 'and nothing is lost');

-- Recompilation.

create temporary table answer on commit drop as
select pgflow.ensure_flow_compiled(
  'f', pg_temp.shape(pg_temp.step('one'), pg_temp.step('two', 'one')) || '{"options": {"timeout": 11}}', true, 'step'
) as result;
select is(result ->> 'status', 'recompiled', 'with permission the flow is recompiled') from answer;
select is(
  result -> 'routes', '[{"step_slug": "one", "queue_name": "f__one"}, {"step_slug": "two", "queue_name": "f__two"}]',
  'the result tells the new routes'
)
from answer;
select ok(
  result -> 'differences' ? 'Step at index 1, slug: the database has "many", the shape has "two".',
  'and what was different'
)
from answer;
select is(result -> 'uncovered', '["one", "two"]', 'workers of the old generation cover nothing') from answer;
select results_eq(
  $$ select step_slug, queue_name from pgflow.steps where flow_slug = 'f' order by step_index $$,
  $$ values ('one', 'f__one'), ('two', 'f__two') $$,
  'the flow has the new steps'
);
select results_eq(
  $$ select dep_slug, step_slug from pgflow.deps where flow_slug = 'f' $$,
  $$ values ('one', 'two') $$,
  'and the new dependencies'
);
select results_eq(
  $$ select opt_max_attempts, opt_base_delay, opt_timeout from pgflow.flows where flow_slug = 'f' $$,
  $$ values (3, 5, 11) $$,
  'and the options of the new shape'
);
select is(
  pg_temp.pgmq_has('%f\_\_%'),
  'a_f__one, a_f__two, f__one (listed), f__two (listed), q_f__one, q_f__two',
  'the queues of the old steps are gone, those of the new ones are there'
);
select results_eq(
  $$ select queue_name, step_slug from pgflow.queues where flow_slug = 'f' order by 1 $$,
  $$ values ('f__one', 'one'), ('f__two', 'two') $$,
  'with their owner rows'
);
select is_empty(
  $$
    select from pgflow.runs where flow_slug = 'f'
    union all
    select from pgflow.step_states where flow_slug = 'f'
    union all
    select from pgflow.step_tasks where flow_slug = 'f'
  $$,
  'runs, states and tasks are gone'
);
select is_empty($$ select * from pg_temp.messages('f') $$, 'no old message is on a new queue');
select is(pg_temp.picture('other'), (select other from before), 'another flow is not touched');

-- The fence.

select cmp_ok(
  (pg_temp.flow('f')).generation,
  '>',
  (select generation from before),
  'the generation goes up'
);
select results_eq(
  $$ select count(*), min(stop_reason) from pgflow.workers where flow_slug = 'f' $$,
  $$ values (2::bigint, 'Flow "f" was compiled anew, with the loss of its data.') $$,
  'every worker of the flow is told to stop, and why'
);
select is(
  (pg_temp.worker_row(pg_temp.id('poller'))).stop_reason,
  'Flow "f" was compiled anew, with the loss of its data.',
  'so is a worker of pgflow 0.14, found by its queue in whatever case'
);
select is(
  (pg_temp.worker_row(pg_temp.id('told'))).stop_reason,
  'told before',
  'what a worker was told before stands'
);
select is(
  (pg_temp.worker_row(pg_temp.worker('other'))).stop_reason,
  null,
  'a worker of another flow is not told to stop'
);
select pg_temp.start('f', 'again');
select throws_ok(
  $$ select pg_temp.claim('f', 'one') $$,
  'PF013',
  null,
  'a worker of the old generation can not claim from the new queues'
);
select is(pg_temp.tasks('again', 'one'), 'queued', 'its work waits for a new one');

-- The mode.

select is(
  pg_temp.status('f', pg_temp.shape(pg_temp.step('one'), pg_temp.step('two', 'one')), 'flow', true),
  'recompiled', 'another mode leads to recompilation'
);
select is(pg_temp.pgmq_has('%f%'), 'a_f, f (listed), q_f', 'the flow has its one queue and no other');
select is(
  pg_temp.status('f', pg_temp.shape(pg_temp.step('ONE'), pg_temp.step('two', 'ONE')), 'step', true),
  'recompiled', 'and back, with a slug in another case'
);
select is_empty($$ select * from pgflow.check_integrity('f') $$, 'the flow is sound');

select * from finish();
rollback;
