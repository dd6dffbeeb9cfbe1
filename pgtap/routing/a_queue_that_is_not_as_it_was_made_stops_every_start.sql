begin;
\ir damages.psql
select plan(85);

-- A start and its plan.

select is_empty(
  format(
    $$
      select damaged.queue_mode, start.called, outcome.*
      from damaged
      cross join (values ('status'), ('planned')) as start (called)
      cross join lateral pg_temp.outcome(
        damaged.change, pg_temp.start_up(start.called, damaged.flow_slug, damaged.queue_mode)
      ) as outcome
      where damaged.situation = %L
        and (coalesce(outcome.sqlstate || ' ' || outcome.message, outcome.result), outcome.is_unchanged) is distinct from (
          coalesce(
            format('PF007 The routing of flow "%%s" is not what was compiled: ', damaged.flow_slug) || damaged.fault, 'verified'
          ),
          true
        )
    $$,
    damage.situation
  ),
  format('%s: the flow %s', damage.situation, case when damage.fault is null then 'starts' else 'does not start, and nothing is changed' end)
)
from damage;

-- A worker that registers without a start.

select is_empty(
  format(
    $$
      select damaged.queue_mode, outcome.*
      from damaged
      cross join lateral pg_temp.outcome(
        damaged.change,
        format(
          'select (pgflow.register_worker(gen_random_uuid(), ''late'', %%L, %%L)).queue_name', damaged.flow_slug, damaged.step_slug
        )
      ) as outcome
      where damaged.situation = %L
        and case
          when damaged.fault is null then outcome.result is distinct from damaged.queue_name
          else (outcome.sqlstate || ' ' || outcome.message, outcome.is_unchanged) is distinct from (
            format('PF007 The routes of flow "%%s" are not what was compiled.', damaged.flow_slug), true
          )
          or position(
            regexp_replace(
              damaged.fault,
              '^Route of step "(.*)" at index (.*): persisted (.*), derived (.*)',
              'Step "\1" (index \2): the persisted route is \3, the derived one is \4'
            ) in outcome.detail
          ) = 0
        end
    $$,
    damage.situation
  ),
  format(
    '%s: a worker %s', damage.situation, case when damage.fault is null then 'registers' else 'does not register, and leaves no row' end
  )
)
from damage;

-- A start with another shape.

select is_empty(
  format(
    $$
      select damaged.queue_mode, result.answer
      from damaged
      cross join lateral pg_temp.after(
        damaged.change,
        format(
          'select pgflow.ensure_flow_compiled(%%L, pg_temp.shape(pg_temp.step(''a'')), false, %%L)',
          damaged.flow_slug, damaged.queue_mode
        )
      ) as result (answer)
      where damaged.situation = %L
        and not (
          result.answer::jsonb ->> 'status' = 'mismatch'
          and result.answer::jsonb -> 'differences' ? coalesce(damaged.fault, 'Step at index 1: the database has "b", the shape has no such step.')
        )
    $$,
    damage.situation
  ),
  format('%s: of a flow with another shape that is told, too', damage.situation)
)
from damage;

-- create_flow gives back a flow that is there. It makes the queue again when nothing is left of it, and takes nothing.

select results_eq(
  $$
    select damaged.situation, pg_temp.told(damaged.change, 'select (pgflow.create_flow(''Whole'')).flow_slug')
    from damaged
    where damaged.queue_mode = 'flow'
    order by damaged.situation
  $$,
  $$
    select damage.situation, case damage.situation when 'dropped by pgmq' then 'Whole (changed)' else 'Whole' end
    from damage
    order by damage.situation
  $$,
  'create_flow makes a queue again of which nothing is left, and changes nothing else'
);
select is_empty(
  $$
    select damaged.situation, pg_temp.told(damaged.change, 'select (pgflow.create_flow(''Steps'')).flow_slug')
    from damaged
    where damaged.queue_mode = 'step'
      and pg_temp.told(damaged.change, 'select (pgflow.create_flow(''Steps'')).flow_slug') <> 'Steps'
  $$,
  'of a step-mode flow it changes nothing'
);

-- Nor does a flow grow over a fault.

select results_eq(
  $$
    select damaged.situation, pg_temp.told(damaged.change, 'select (pgflow.add_step(''Whole'', ''late'')).queue_name')
    from damaged
    where damaged.queue_mode = 'flow'
    order by damaged.situation
  $$,
  $$
    select
      damage.situation,
      case when damage.fault is null then 'whole (changed)' else 'PF007 The routes of flow "Whole" are not what was compiled.' end
    from damage
    order by damage.situation
  $$,
  'add_step adds a step only to a flow whose queue is as it was made'
);

-- An owner row too many.

select is(
  pg_temp.told(
    format(
      'insert into pgflow.queues (queue_name, flow_slug, step_slug, physical_created_at) values (''0'', %L, %L, now())',
      owner.flow_slug, owner.step_slug
    ),
    format(
      'select (pgflow.register_worker(gen_random_uuid(), ''late'', %L, %L)).queue_name', owner.flow_slug, owner.step_slug
    )
  ),
  owner.queue_name || ' (changed)', 'a worker gets the queue that is routed to: ' || owner.queue_name
)
from (values ('Whole', null, 'whole'), ('Steps', 'a', 'steps__a')) as owner (flow_slug, step_slug, queue_name);

-- The other side of a changed row.

select is(
  pg_temp.told(
    'update pgflow.steps set queue_name = ''whole'' where flow_slug = ''other''',
    'select pg_temp.status(''other'', pg_temp.shape(pg_temp.step(''z'')))'
  ),
  'PF007 The routing of flow "other" is not what was compiled: Route of step "z" at index 0: persisted "whole", derived "other".',
  'a flow whose step was led to the queue of another does not start'
);
select is(
  pg_temp.told(
    'update pgflow.steps set queue_name = ''other'' where flow_slug = ''Whole''',
    'select pg_temp.status(''other'', pg_temp.shape(pg_temp.step(''z'')))'
  ),
  'verified', 'a flow to whose queue a step of another was led starts: its own is as it was'
);
select is(
  pg_temp.told(
    'update pgflow.queues set flow_slug = ''other'' where queue_name = ''whole''',
    'select pg_temp.status(''other'', pg_temp.shape(pg_temp.step(''z'')))'
  ),
  'verified', 'a flow that was given the queue of another starts: its own is as it was'
);
select is(
  pg_temp.told(
    'update pgflow.queues set flow_slug = ''other'' where queue_name = ''whole''',
    'select detail from pgflow.check_integrity(''Whole'') where code = ''route'''
  ),
  'Queue "whole" belongs to flow "other".', 'and the integrity check names the one that lost it'
);

-- Ids tell that a queue was made again only where there were some.

select from pg_temp.status('fresh', pg_temp.shape(pg_temp.step('a')));
select is(
  pg_temp.told(
    'select pgmq.drop_queue(''FRESH''); select pgmq.create(''fresh'')',
    'select pg_temp.status(''fresh'', pg_temp.shape(pg_temp.step(''a'')))'
  ),
  'verified', 'a queue that was made again before anything was sent to it is as good as the first'
);

select * from finish();
rollback;
