begin;
\ir helpers.psql
select plan(31);

-- A queue that nobody owns, on the later of two routes.

select pgmq.create('flow__second');
select from pgmq.send('flow__second', '{"stale": true}');
select pg_temp.world() as world \gset

select results_eq(
  $outer$
    select *
    from pg_temp.refusal(
      $$
        select pgflow.ensure_flow_compiled(
          'flow', pg_temp.shape(pg_temp.step('first'), pg_temp.step('second')), false, 'step'
        )
      $$
    )
  $outer$,
  $$
    values (
      'PF004',
      'Queue "flow__second", which flow "flow" needs, exists already and belongs to no flow.',
      format(
        'PGMQ lists it as "flow__second", made at %s. Schema pgmq has a_flow__second, q_flow__second, '
        'q_flow__second_msg_id_seq, q_flow__second_pkey, q_flow__second_vt_idx.',
        transaction_timestamp()
      ),
      'Use another flow slug; or, when nobody needs it, select pgmq.drop_queue(''flow__second'').'
    )
  $$,
  'a queue that exists and belongs to nobody is refused'
);
select is(pg_temp.pgmq_has('%first%'), 'nothing', 'the queue of the first step was not made');
select is(pg_temp.world(), :'world', 'no flow, step, owner row or queue was made or changed');

-- Under every spelling, and from left-over pieces.

select pgmq.create('Mixed__Case');
select throws_ok(
  $$ select pgflow.ensure_flow_compiled('mixed', pg_temp.shape(pg_temp.step('case')), false, 'step') $$,
  'PF004', null, 'a queue that PGMQ lists in another spelling is refused'
);
select throws_ok($$ select pgflow.create_flow('MIXED__CASE') $$, 'PF004', null, 'in flow mode too');

select pgmq.create('unlisted');
delete from pgmq.meta
where queue_name = 'unlisted';
select throws_ok(
  $$ select pgflow.create_flow('unlisted') $$,
  'PF004',
  null,
  'tables that PGMQ no longer lists are refused'
);
drop table pgmq.q_unlisted;
select results_eq(
  $outer$ select sqlstate, detail, hint from pg_temp.refusal($$ select pgflow.create_flow('unlisted') $$) $outer$,
  $$
    values (
      'PF004',
      'PGMQ does not list it. Schema pgmq has a_unlisted.',
      'Use another flow slug; or, when nobody needs it, drop what is left over.'
    )
  $$,
  'so is an archive that was left over'
);
drop table pgmq.a_unlisted;
create view pgmq.q_unlisted as select 1 as one;
select throws_ok($$ select pgflow.create_flow('unlisted') $$, 'PF004', null, 'so is a view in the place of the table');
drop view pgmq.q_unlisted;
insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values ('UnListed', false, false);
select throws_ok($$ select pgflow.create_flow('unlisted') $$, 'PF004', null, 'so is a name that is only listed');
delete from pgmq.meta
where queue_name = 'UnListed';
select lives_ok($$ select pgflow.create_flow('unlisted') $$, 'when all of it is gone, the name is free');

select lives_ok($$ select pgflow.create_flow('plain_vt_idx') $$, 'a flow can be named like an index');
select throws_ok(
  $$ select pgflow.create_flow('plain') $$,
  'PF004', null, 'but then the queue whose index it would be is refused, since PGMQ would silently leave the index out'
);

-- Another flow's queue.

select lives_ok($$ select pgflow.create_flow('Orders') $$, 'a first spelling of a slug is accepted');
select results_eq(
  $outer$ select * from pg_temp.refusal($$ select pgflow.create_flow('orders') $$) $outer$,
  $$
    values (
      'PF005',
      'Queue "orders", which flow "orders" needs, belongs to flow "Orders".',
      'A queue has one owner; this one''s is flow "Orders".',
      'Use another flow slug, or delete the flow that owns the queue.'
    )
  $$,
  'a second spelling is refused, naming the owner'
);
select throws_ok(
  $$ select pgflow.ensure_flow_compiled('ORDERS', pg_temp.shape(pg_temp.step('a'))) $$,
  'PF005', null, 'and so it is when compiled from a shape'
);
select is(pg_temp.status('a', pg_temp.shape(pg_temp.step('b')), 'step'), 'compiled', 'flow a has a step b');
select throws_ok(
  $$ select pgflow.create_flow('a__b') $$,
  'PF005', 'Queue "a__b", which flow "a__b" needs, belongs to step "b" of flow "a".',
  'a flow-mode flow a__b can not have the queue of step b of flow a'
);
select is(pg_temp.status('c__d', pg_temp.shape(pg_temp.step('x'))), 'compiled', 'flow c__d has its one queue');
select throws_ok(
  $$ select pgflow.ensure_flow_compiled('c', pg_temp.shape(pg_temp.step('a'), pg_temp.step('d')), false, 'step') $$,
  'PF005', 'Queue "c__d", which flow "c" needs, belongs to flow "c__d".',
  'nor can a step of flow c have that of flow c__d'
);
select is(pg_temp.pgmq_has('%c\_\_a%'), 'nothing', 'and no queue of its other steps was made');
select is(pg_temp.status('e__f', pg_temp.shape(pg_temp.step('g')), 'step'), 'compiled', 'flow e__f has a step g');
select throws_ok(
  $$ select pgflow.ensure_flow_compiled('e', pg_temp.shape(pg_temp.step('f__g')), false, 'step') $$,
  'PF005', 'Queue "e__f__g", which flow "e" needs, belongs to step "g" of flow "e__f".',
  'nor can the step f__g of a flow e have it'
);

-- Own queues that have no flow.

insert into pgflow.queues values ('lost', 'lost', null, transaction_timestamp());
select throws_ok(
  $$ select pgflow.create_flow('lost') $$,
  'PF007', 'Queue "lost" of flow "lost" is not the one that was made for it.',
  'an owner row whose queue is gone is refused'
);
select pgmq.create('lost');
select lives_ok($$ select pgflow.create_flow('lost') $$, 'when the queue is the recorded one, its owner may have it');
insert into pgflow.queues values ('other', 'other', 'step', transaction_timestamp());
select pgmq.create('other');
select throws_ok(
  $$ select pgflow.create_flow('other') $$,
  'PF005', 'Queue "other", which flow "other" needs, belongs to step "step" of flow "other".',
  'a queue that is private to a step of the flow is not the flow''s'
);
insert into pgflow.queues values ('again', 'again', null, transaction_timestamp());
select pgmq.create('again');
select pg_temp.make_again('again');
select throws_ok(
  $$ select pgflow.create_flow('again') $$,
  'PF007',
  null,
  'a queue that somebody made again is refused'
);

-- PGMQ is asked about every name.

create or replace function pgmq.validate_queue_name(queue_name text)
returns void
language plpgsql
as $$
begin
  if queue_name = 'picky__b' then
    raise exception 'PGMQ does not like %', queue_name;
  end if;
end
$$;
select throws_ok(
  $$ select pgflow.ensure_flow_compiled('picky', pg_temp.shape(pg_temp.step('a'), pg_temp.step('b')), false, 'step') $$,
  'P0001', 'PGMQ does not like picky__b', 'a name that PGMQ refuses is refused'
);
select is(pg_temp.pgmq_has('%picky%'), 'nothing', 'before any queue is made');
select is_empty($$ select from pgflow.flows where flow_slug = 'picky' $$, 'and before the flow is');

-- The order of the answers.

select pgmq.create('many__c');
select pgmq.create('many__b');
select throws_ok(
  $$
    select pgflow.ensure_flow_compiled(
      'many', pg_temp.shape(pg_temp.step('a'), pg_temp.step('c'), pg_temp.step('b')), false, 'step'
    )
  $$,
  'PF004', 'Queue "many__c", which flow "many" needs, exists already and belongs to no flow.',
  'of several conflicts that of the first step is named'
);
select results_eq(
  $$ select step_index, queue_name, errcode from pgflow.queue_conflicts('many', 'step', '{a,c,b}') $$,
  $$ values (1, 'many__c', 'PF004'), (2, 'many__b', 'PF004') $$,
  'queue_conflicts lists all of them in step order'
);

select * from finish();
rollback;
