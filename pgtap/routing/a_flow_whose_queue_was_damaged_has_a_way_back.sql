begin;
\ir damages.psql
select plan(54);

-- The statements of the way back, then a start, and the flow works to its end.

select is_empty(
  format(
    $$
      select damaged.queue_mode, outcome.*
      from damaged
      cross join lateral pg_temp.outcome(
        concat_ws('; ', damaged.change, damaged.way_back),
        pg_temp.start_up('status', damaged.flow_slug, damaged.queue_mode)
      ) as outcome
      where damaged.situation = %L
        and outcome.result is distinct from 'verified'
    $$,
    damage.situation
  ),
  format('%s: after %s the flow starts', damage.situation, coalesce(damage.way_back, 'nothing at all'))
)
from damage;
select is_empty(
  format(
    $$
      select damaged.queue_mode, result.answer
      from damaged
      cross join lateral pg_temp.after(
        concat_ws(
          '; ', damaged.change, damaged.way_back,
          format('select pg_temp.start(%%L, ''another''); select pg_temp.drain(%%1$L)', damaged.flow_slug)
        ),
        format(
          'select status from pgflow.runs where flow_slug = %%1$L and status <> ''completed'''
          ' union all select detail from pgflow.check_integrity(%%1$L)'
          ' union all select queue_name from pg_temp.messages(%%1$L)',
          damaged.flow_slug
        )
      ) as result (answer)
      where damaged.situation = %L
    $$,
    damage.situation
  ),
  format('%s: and all its work is done, old and new', damage.situation)
)
from damage;

-- A repair does not build upon what is no queue.

select is_empty(
  $$
    select damaged.situation, damaged.queue_mode, outcome.*
    from damaged
    cross join lateral pg_temp.outcome(
      damaged.change, format('select action from pgflow.repair_queues(%L)', damaged.flow_slug)
    ) as outcome
    where damaged.situation in ('replaced by a view', 'replaced by a table that is no queue', 'renamed')
      and (outcome.sqlstate, outcome.message, outcome.is_unchanged) is distinct from (
        'PF007', format('Queue "%s" can''t be made: names that it needs are taken.', damaged.queue_name), true
      )
  $$,
  'a queue is not made again where something else has its name'
);
select results_eq(
  $outer$
    select outcome.detail, outcome.hint
    from pg_temp.outcome(
      'drop table pgmq.a_whole; create view pgmq.a_whole as select 1 as one', $$ select pgflow.repair_queues('Whole') $$
    ) as outcome
  $outer$,
  $$
    values (
      'What has the name of one of its tables is none (drop view pgmq.a_whole).',
      'Rename what has them; or, when nobody needs it, drop view pgmq.a_whole. Then call this again.'
    )
  $$,
  'the refusal tells what it is'
);
select is(
  pg_temp.told(
    'drop table pgmq.a_whole; create view pgmq.a_whole as select 1 as one; drop view pgmq.a_whole',
    'select action from pgflow.repair_queues(''Whole'')'
  ),
  'made (changed)', 'and when that is done, it is made again'
);

-- What somebody sent to the queue that was made again stays there for somebody to look at.

select is(
  pg_temp.told(
    'select pg_temp.make_again(''whole''); select pgmq.send(''whole'', ''{"of": "somebody"}'') from generate_series(1, 3);'
    'select pgflow.repair_queues(''Whole'')',
    'select string_agg(distinct code, '', '') from pgflow.check_integrity(''Whole'')'
  ),
  'message_without_a_task', 'a repair takes a queue over with the messages in it, of which the integrity check tells'
);

select * from finish();
rollback;
