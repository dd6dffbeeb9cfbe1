begin;
\ir ownership.psql
select plan(18);

-- What a flow left behind that was deleted by hand, row by row, and that would have had the queue in just this way.

create temporary table orphan (situation text, change text, answer text) on commit drop;
insert into orphan values
(
  'without a queue', 'insert into pgflow.queues values (''{q}'', ''Orders'', {step}, now())',
  'PF007 Queue "{q}" of flow "Orders" is not the one that was made for it.'
),
(
  'whose queue was made again',
  'select pgmq.create(''{q}''); insert into pgflow.queues values (''{q}'', ''Orders'', {step}, now() - interval ''1 second'')',
  'PF007 Queue "{q}" of flow "Orders" is not the one that was made for it.'
),
(
  'whose queue lost its archive',
  'select pgmq.create(''{q}''); drop table pgmq.a_{q}; insert into pgflow.queues values (''{q}'', ''Orders'', {step}, now())',
  'PF007 Queue "{q}" of flow "Orders" is not the one that was made for it.'
),
(
  'of another step', 'select pgmq.create(''{q}''); insert into pgflow.queues values (''{q}'', ''Orders'', ''Pack'', now())',
  'PF005 Queue "{q}", which flow "Orders" needs, belongs to step "Pack" of flow "Orders".'
),
(
  'of another flow', 'select pgmq.create(''{q}''); insert into pgflow.queues values (''{q}'', ''gone'', null, now())',
  'PF005 Queue "{q}", which flow "Orders" needs, belongs to flow "gone".'
);

create temporary table attempt on commit drop as
select
  orphan.situation,
  replace(pg_temp.of_queue(orphan.change, needed.queue_name), '{step}', quote_nullable(needed.step_slug)) as change,
  pg_temp.of_queue(orphan.answer, needed.queue_name) as answer,
  format('delete from pgflow.queues where queue_name = %L', needed.queue_name) as removal,
  needed.queue_name,
  way.*
from orphan
cross join (values ('orders', null), ('orders__wrap', 'Wrap')) as needed (queue_name, step_slug)
cross join lateral pg_temp.ways_in('Orders', needed.step_slug) as way
where way.result <> 'recompiled';

select is_empty(
  format(
    $$
      select attempt.way, outcome.*
      from attempt
      cross join lateral pg_temp.outcome(attempt.change, attempt.call) as outcome
      where attempt.situation = %L
        and (outcome.sqlstate || ' ' || outcome.message, outcome.hint, outcome.is_unchanged) is distinct from (
          attempt.answer,
          format(
            'There is no flow "%%s"; its row was left behind. When nobody needs the queue: %%s.',
            case attempt.situation when 'of another flow' then 'gone' else 'Orders' end,
            attempt.removal
          ),
          true
        )
    $$,
    orphan.situation
  ),
  'every way in finds and refuses an owner row ' || orphan.situation
)
from orphan;
select is_empty(
  format(
    $$
      select attempt.way, outcome.*
      from attempt
      cross join lateral pg_temp.outcome(
        -- Without its owner row the queue is nobody's, and refused as such, with a way out of its own.
        format(
          '%%s; %%s; select pgmq.drop_queue(queue_name) from pgmq.meta where queue_name = %%L',
          attempt.change, attempt.removal, attempt.queue_name
        ),
        attempt.call
      ) as outcome
      where attempt.situation = %L
        and attempt.way in ('create_flow', 'compile')
        and outcome.result is distinct from attempt.result
    $$,
    orphan.situation
  ),
  'the way out frees the name of an owner row ' || orphan.situation
)
from orphan;
select is(
  pg_temp.told(
    'select pgmq.create(''orders''); insert into pgflow.queues values (''orders'', ''Orders'', null, now() - interval ''1 second'');'
    'delete from pgflow.queues where queue_name = ''orders''',
    'select pgflow.create_flow(''Orders'')'
  ),
  'PF004 Queue "orders", which flow "Orders" needs, exists already and belongs to no flow.',
  'without its owner row a queue is not taken either'
);

-- The row, its flow, its step and its queue are all as they were: it is the flow's.

select pgmq.create('orders');
select from pgmq.send('orders', '{"from": "before"}');
insert into pgflow.queues values ('orders', 'Orders', null, now());
select is(
  pg_temp.told('select', 'select (pgflow.create_flow(''Orders'')).queue_mode'), 'flow (changed)',
  'a flow that is defined again has the queue that is recorded as its own'
);
select lives_ok($$ select pgflow.create_flow('Orders') $$, 'so it does');
select is((select count(*) from pgmq.q_orders), 1::bigint, 'with what is in it');
select is_empty($$ select * from pgflow.route_faults('Orders') $$, 'and is sound');

-- A flow that is there is not helped by what helps one that is not.

select pg_temp.compile('Steps', 'step', jsonb_build_array(pg_temp.step('a')));
select is(
  pg_temp.told('select pgmq.drop_queue(''steps__a'')', 'select action from pgflow.repair_queues(''Steps'')'), 'made (changed)',
  'the way out of a flow that is there is to repair it'
);
select throws_ok($$ select pgflow.repair_queues('Gone') $$, 'PF018', null, 'which a flow that is not there can not be');
select lives_ok($$ select pgflow.delete_flow_and_data('Gone') $$, 'nor can it be deleted again');

select * from finish();
rollback;
