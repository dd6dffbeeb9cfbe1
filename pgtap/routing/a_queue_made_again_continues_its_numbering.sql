begin;
\ir helpers.psql
select plan(16);

select is(pgflow.highest_message_id('nowhere'), 0::bigint, 'nothing was ever sent to a queue that never was');
select pg_temp.compile('f', 'step', jsonb_build_array(pg_temp.step('one')));
select is(pgflow.highest_message_id('f__one'), 0::bigint, 'nothing was sent to a new queue');
select pg_temp.start('f', 'first');
select pg_temp.start('f', 'second');
select is(pgflow.highest_message_id('f__one'), 2::bigint, 'two runs sent two messages');
select from pgmq.delete('f__one', 2::bigint);
select is(pgflow.highest_message_id('f__one'), 2::bigint, 'a deleted message counts');
delete from pgmq.q_f__one;
select is(pgflow.highest_message_id('f__one'), 2::bigint, 'in an emptied queue too');

-- Recompilation.

select is(
  pg_temp.status('f', pg_temp.shape(pg_temp.step('one'), pg_temp.step('two')), 'step', true),
  'recompiled', 'the flow gets a second step'
);
select pg_temp.start('f', 'third');
select results_eq(
  $$ select queue_name, msg_id from pg_temp.messages('f') order by 1 $$,
  $$ values ('f__one', 3::bigint), ('f__two', 3::bigint) $$,
  'the queues of a recompiled flow start above every id of the old ones'
);
select is(
  pg_temp.status('f', pg_temp.shape(pg_temp.step('two')), 'step', true),
  'recompiled', 'then it loses its first step'
);
select pg_temp.start('f', 'fourth');
select is(
  pg_temp.status('f', pg_temp.shape(pg_temp.step('one')), 'step', true),
  'recompiled', 'and gets it back in the place of the second'
);
select pg_temp.start('f', 'fifth');
select results_eq(
  $$ select queue_name, msg_id from pg_temp.messages('f') $$,
  $$ values ('f__one', 5::bigint) $$,
  'a name that comes back after it was gone for a while continues, too'
);

-- A queue that is lost.

select from pgmq.drop_queue('f__one');
select is(pgflow.highest_message_id('f__one'), 5::bigint, 'of a lost queue the tasks remember what was sent');
select from pgflow.make_queue('f__one', pgflow.highest_message_id('f__one'));
select is(pgmq.send('f__one', '{}'), 6::bigint, 'the queue made again goes on from there');
select from pgmq.archive('f__one', 6::bigint);
drop table pgmq.q_f__one;
select is(pgflow.highest_message_id('f__one'), 6::bigint, 'of a lost table the archive remembers');

-- create_flow, the way of a plain flow.

select from pgflow.create_flow('plain');
select from pgflow.add_step('plain', 'only');
select pg_temp.start('plain', 'sixth');
select from pgmq.drop_queue('plain');
select lives_ok($$ select pgflow.create_flow('plain') $$, 'create_flow on a flow whose queue is gone');
select is(pgmq.send('plain', '{}'), 2::bigint, 'makes the queue again, and it continues');
select is_empty($$ select * from pgflow.route_faults('plain') $$, 'and the flow is sound again');

select * from finish();
rollback;
