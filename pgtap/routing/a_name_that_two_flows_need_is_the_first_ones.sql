begin;
\ir ownership.psql
select plan(26);

create function pg_temp.flow_mode(flow_slug text, step_slug text default 'a')
returns text
language sql
as $$
  select format('select pg_temp.compile(%L, ''flow'', jsonb_build_array(pg_temp.step(%L)));', flow_mode.flow_slug, flow_mode.step_slug)
$$;

create function pg_temp.step_mode(flow_slug text, step_slug text)
returns text
language sql
as $$
  select format('select pg_temp.compile(%L, ''step'', jsonb_build_array(pg_temp.step(%L)));', step_mode.flow_slug, step_mode.step_slug)
$$;

-- Two flows, one name. The second is in flow mode where it names no step.
create temporary table meeting (
  situation text, first_flow text, owner_words text, second_flow text, second_step text, queue_name text
) on commit drop;
insert into meeting values
('a flow and its slug in another case', pg_temp.flow_mode('Orders'), 'flow "Orders"', 'orders', null, 'orders'),
('the same step of slugs in two cases', pg_temp.step_mode('Orders', 'wrap'), 'step "wrap" of flow "Orders"', 'orders', 'WRAP', 'orders__wrap'),
('a flow and a step of another', pg_temp.flow_mode('orders__wrap'), 'flow "orders__wrap"', 'Orders', 'Wrap', 'orders__wrap'),
('a step and a flow', pg_temp.step_mode('Orders', 'Wrap'), 'step "Wrap" of flow "Orders"', 'orders__wrap', null, 'orders__wrap'),
('steps of two flows', pg_temp.step_mode('a__b', 'c'), 'step "c" of flow "a__b"', 'a', 'b__c', 'a__b__c'),
('steps of two flows, the other way round', pg_temp.step_mode('a', 'b__c'), 'step "b__c" of flow "a"', 'a__b', 'c', 'a__b__c'),
(
  'the index that stands for a long step and a flow',
  pg_temp.step_mode(repeat('f', 44), repeat('s', 20)),
  format('step "%s" of flow "%s"', repeat('s', 20), repeat('f', 44)),
  repeat('f', 44) || '__0', null, repeat('f', 44) || '__0'
);

create temporary table attempt on commit drop as
select meeting.situation, meeting.first_flow, meeting.owner_words, meeting.queue_name, owning.slug as owning_flow, way.*
from meeting
cross join lateral pg_temp.ways_in(meeting.second_flow, meeting.second_step) as way
cross join lateral substring(meeting.owner_words from 'flow "(.*)"$') as owning (slug)
-- A slug of 47 characters has no queue for a step, so there is no flow to recompile from.
where way.result <> 'recompiled' or length(way.flow_slug) <= 42;
select pg_temp.have_flow_to_recompile(recompiled.flow_slug)
from (select distinct attempt.flow_slug from attempt where attempt.result = 'recompiled') as recompiled;

select is_empty(
  format(
    $$
      select attempt.way, outcome.*
      from attempt
      cross join lateral pg_temp.outcome(attempt.first_flow, attempt.call) as outcome
      where attempt.situation = %L
        and (outcome.sqlstate, outcome.message, outcome.detail, outcome.hint, outcome.is_unchanged) is distinct from (
          'PF005',
          format('Queue "%%s", which flow "%%s" needs, belongs to %%s.', attempt.queue_name, attempt.flow_slug, attempt.owner_words),
          format('A queue has one owner; this one''s is %%s.', attempt.owner_words),
          format(
            'Use another flow slug; or, when nobody needs flow "%%1$s", select pgflow.delete_flow_and_data(''%%1$s'').',
            attempt.owning_flow
          ),
          true
        )
    $$,
    meeting.situation
  ),
  'every way in leaves the name to the first: ' || meeting.situation
)
from meeting;
select is_empty(
  format(
    $$
      select attempt.way, outcome.*
      from attempt
      cross join lateral pg_temp.outcome(
        format('%%s select pgflow.delete_flow_and_data(%%L)', attempt.first_flow, attempt.owning_flow), attempt.call
      ) as outcome
      where attempt.situation = %L
        and attempt.way in ('create_flow', 'compile', 'recompile')
        and (outcome.result, outcome.is_unchanged) is distinct from (attempt.result, false)
    $$,
    meeting.situation
  ),
  'when the first is deleted, the second has it: ' || meeting.situation
)
from meeting;

-- Names of different queues that meet in PGMQ's tables, indexes and sequences.

create temporary table neighbours (first_flow text, owner_words text, second_flow text, second_step text) on commit drop;
insert into neighbours values
(pg_temp.flow_mode('orders_vt_idx'), 'queue "orders_vt_idx" of flow "orders_vt_idx"', 'Orders', null),
(pg_temp.flow_mode('Orders'), 'queue "orders" of flow "Orders"', 'orders_vt_idx', null),
(pg_temp.flow_mode('orders_pkey'), 'queue "orders_pkey" of flow "orders_pkey"', 'Orders', null),
(pg_temp.flow_mode('Orders'), 'queue "orders" of flow "Orders"', 'orders_msg_id_seq', null),
(pg_temp.step_mode('a', 'b__c_vt_idx'), 'queue "a__b__c_vt_idx" of step "b__c_vt_idx" of flow "a"', 'a__b', 'c'),
(pg_temp.step_mode('a__b', 'c'), 'queue "a__b__c" of step "c" of flow "a__b"', 'a', 'b__c_pkey');
select is_empty(
  format(
    $$
      select way.way, outcome.*
      from neighbours
      cross join lateral pg_temp.ways_in(neighbours.second_flow, neighbours.second_step) as way
      cross join lateral pg_temp.outcome(neighbours.first_flow, way.call) as outcome
      where (neighbours.owner_words, neighbours.second_flow) = (%L, %L)
        and way.result <> 'recompiled'
        and (outcome.sqlstate, outcome.message, outcome.is_unchanged) is distinct from (
          'PF005',
          format(
            'Queue "%%s", which flow "%%s" needs, can''t be made beside %%s.',
            lower(concat_ws('__', neighbours.second_flow, neighbours.second_step) collate "C"), neighbours.second_flow, neighbours.owner_words
          ),
          true
        )
    $$,
    neighbours.owner_words,
    neighbours.second_flow
  ),
  format('beside %s there is none for %s', neighbours.owner_words, concat_ws(', step ', neighbours.second_flow, neighbours.second_step))
)
from neighbours;
select results_eq(
  $outer$
    select outcome.detail, outcome.hint
    from pg_temp.outcome(pg_temp.flow_mode('Orders'), $$ select pgflow.create_flow('orders_vt_idx') $$) as outcome
  $outer$,
  $$
    values (
      'PGMQ does not list it. Schema pgmq has q_orders_vt_idx. Other names that it needs belong to pgmq.q_orders.',
      'Use another flow slug; or, when nobody needs flow "Orders", select pgflow.delete_flow_and_data(''Orders'').'
    )
  $$,
  'the refusal tells which table has the name, and does not tell anybody to drop it'
);

-- Slugs that differ by case meet only where their queues do.

select is(
  pg_temp.told(
    pg_temp.step_mode('Orders', 'wrap'), 'select pg_temp.status(''orders'', pg_temp.shape(pg_temp.step(''pack'')), ''step'')'
  ),
  'compiled (changed)', 'two spellings of a flow with different steps have different queues'
);
select is(
  pg_temp.told(pg_temp.step_mode('Orders', 'wrap'), 'select pg_temp.status(''orders'', pg_temp.shape(pg_temp.step(''wrap'')))'),
  'compiled (changed)', 'so have a flow and, in another mode, its other spelling'
);
select is(
  pg_temp.told('select', 'select pg_temp.status(''Orders'', pg_temp.shape(pg_temp.step(''a''), pg_temp.step(''A'')))'),
  'compiled (changed)', 'in flow mode two steps may differ by case: they share the queue anyway'
);
select is(
  pg_temp.told('select', 'select pg_temp.status(''Orders'', pg_temp.shape(pg_temp.step(''a''), pg_temp.step(''A'')), ''step'')'),
  'PF003 Steps "a" and "A" of flow "Orders" cannot both have a queue.', 'in step mode they may not'
);
select is(
  pg_temp.told(pg_temp.flow_mode('Orders'), 'select pgflow.delete_flow_and_data(''orders'')'),
  '', 'deleting a slug in another case deletes nothing'
);

select * from finish();
rollback;
