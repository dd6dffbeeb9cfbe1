begin;
\ir damages.psql
select plan(62);

select is_empty(
  format(
    $$
      select damaged.queue_mode, outcome.*
      from damaged
      cross join lateral pg_temp.outcome(
        damaged.change, format('select pgflow.delete_flow_and_data(%%L)', damaged.flow_slug)
      ) as outcome
      where damaged.situation = %L
        and (coalesce(outcome.sqlstate || ' ' || outcome.message, outcome.result), outcome.is_unchanged) is distinct from (
          coalesce(damaged.deleted, ''), damaged.deleted is not null
        )
    $$,
    damage.situation
  ),
  format('%s: the flow is %s', damage.situation, case when damage.deleted is null then 'deleted' else 'not deleted, nor is anything changed' end)
)
from damage;

-- What there is afterwards. Both others are as they were.

create function pg_temp.remains_after(change text, flow_slug text, queue_name text)
returns text
language sql
as $$
  select string_agg(remains.answer, ' / ')
  from pg_temp.after(
    format('%s; select pgflow.delete_flow_and_data(%L)', remains_after.change, remains_after.flow_slug),
    format(
      $question$
        select pg_temp.left_of(%L)
        union all
        select 'still: ' || flow_slug from pgflow.flows where flow_slug = %L
        union all
        select format('broken: %%s: %%s', flow_slug, fault.detail)
        from pgflow.flows
        cross join lateral pgflow.check_integrity(flow_slug) as fault
        -- A queue that was given away is one too many for who got it, and may have messages of the deleted flow.
        where fault.code not in ('message_without_a_task', 'queue_without_use')
      $question$,
      remains_after.queue_name,
      remains_after.flow_slug
    )
  ) as remains (answer)
$$;

select is_empty(
  format(
    $$
      select damaged.queue_mode, damaged.remains, remains.found
      from damaged
      cross join lateral pg_temp.remains_after(damaged.change, damaged.flow_slug, damaged.queue_name) as remains (found)
      where damaged.situation = %L
        and remains.found is distinct from damaged.remains
    $$,
    damage.situation
  ),
  format('%s: what remains of the queue is %s', damage.situation, pg_temp.of_queue(damage.remains, 'it'))
)
from damage
where damage.deleted is null;

-- The refusal names a way out.

select is(
  pg_temp.told(
    pg_temp.of_flow(damage.change, 'Whole') || '; '
    || (
      select pg_temp.statements(outcome.hint)
      from pg_temp.outcome(pg_temp.of_flow(damage.change, 'Whole'), 'select pgflow.delete_flow_and_data(''Whole'')') as outcome
    ),
    'select pgflow.delete_flow_and_data(''Whole'')'
  ),
  ' (changed)',
  format('%s: after what the hint says, the flow can be deleted', damage.situation)
)
from damage
where damage.deleted is not null;
select is(
  pg_temp.told(
    'update pgflow.queues set flow_slug = ''other'', step_slug = null where queue_name = ''whole''',
    'select pgflow.delete_flow_and_data(''other'')'
  ),
  'PF007 Queue "whole" of flow "other" can''t be dropped: step "a" of flow "Whole" routes to it.',
  'a flow that was given a queue which another one uses is not deleted with it'
);
select results_eq(
  $outer$
    select outcome.detail, outcome.hint
    from pg_temp.outcome(
      'update pgflow.queues set flow_slug = ''other'', step_slug = null where queue_name = ''whole''',
      $$ select pgflow.delete_flow_and_data('other') $$
    ) as outcome
  $outer$,
  $$
    values (
      'Queue "whole" belongs to flow "other".',
      'Somebody edited the owner or the route by hand. Set it right; or, when nobody needs flow "Whole", '
      'select pgflow.delete_flow_and_data(''Whole'').'
    )
  $$,
  'the refusal tells what is wrong with the flow that uses it'
);

select is(
  pg_temp.told(
    'update pgflow.steps set queue_name = ''other'' where flow_slug = ''Whole'' and step_slug = ''a''',
    'select pgflow.delete_flow_and_data(''other'')'
  ),
  'PF007 Queue "other" of flow "other" can''t be dropped: step "a" of flow "Whole" routes to it.',
  'nor is one to whose queue a step of another was led'
);
select is(
  pg_temp.told('create view pg_temp.mine as select * from pgmq.q_whole', 'select pgflow.delete_flow_and_data(''Whole'')'),
  '2BP01 cannot drop table pgmq.q_whole because other objects depend on it',
  'what somebody built upon a queue''s table stops the deletion, in the words of PostgreSQL'
);

-- A spelling is folded alike in any locale, though PGMQ folds its I as the locale does.

select pg_temp.compile('Invoicing', 'flow', jsonb_build_array(pg_temp.step('a')));
update pgmq.meta
set queue_name = 'INVOICING'
where queue_name = 'invoicing';
select lives_ok($$ select pgflow.delete_flow_and_data('Invoicing') $$, 'a flow whose queue is listed in upper case is deleted');
select is(pg_temp.left_of('invoicing'), 'nothing', 'with its queue');

-- What belongs to no flow, or to another.

select pgmq.create('bystander');
select is(
  pg_temp.told('select', format('select pgflow.delete_flow_and_data(%L)', slug)), '',
  format('deleting %L, which names no flow, deletes nothing', slug)
)
from unnest(array['bystander', 'whole', 'WHOLE', 'steps', 'Steps__a', 'steps__a']) as slug;

select * from finish();
rollback;
