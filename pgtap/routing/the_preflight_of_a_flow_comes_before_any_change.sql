begin;
\ir helpers.psql
select plan(10);

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

-- A name of PGMQ's for a part of one queue that is its name for another of the same flow.

select throws_ok(
  $$ select pgflow.ensure_flow_compiled('twin', pg_temp.shape(pg_temp.step('a'), pg_temp.step('a_pkey')), false, 'step') $$,
  'PF003', 'Queues "twin__a" and "twin__a_pkey" of flow "twin" cannot both be made.',
  'two steps whose queues would meet inside PGMQ are refused'
);
select is(pg_temp.pgmq_has('%twin%'), 'nothing', 'before any queue is made');

select * from finish();
rollback;
