begin;
\ir damages.psql
select plan(64);

create function pg_temp.recompilation(called text, flow_slug text, queue_mode text)
returns text
language sql
as $$
  select format(
    'select pg_temp.%I(%L, pg_temp.shape(pg_temp.step(''a''), pg_temp.step(''new'')), %L, true)',
    recompilation.called, recompilation.flow_slug, recompilation.queue_mode
  )
$$;

select is_empty(
  format(
    $$
      select damaged.queue_mode, outcome.*
      from damaged
      cross join lateral pg_temp.outcome(
        damaged.change, pg_temp.recompilation('status', damaged.flow_slug, damaged.queue_mode)
      ) as outcome
      where damaged.situation = %L
        and (coalesce(outcome.sqlstate || ' ' || outcome.message, outcome.result), outcome.is_unchanged) is distinct from (
          coalesce(damaged.recompiled, 'recompiled'), damaged.recompiled is not null
        )
    $$,
    damage.situation
  ),
  format(
    '%s: with permission to lose data the flow is %s',
    damage.situation,
    case when damage.recompiled is null then 'compiled anew' else 'left as it is' end
  )
)
from damage;
select is_empty(
  format(
    $$
      select damaged.queue_mode, outcome.*
      from damaged
      cross join lateral pg_temp.outcome(
        damaged.change, pg_temp.recompilation('planned', damaged.flow_slug, damaged.queue_mode)
      ) as outcome
      where damaged.situation = %L
        and (coalesce(outcome.sqlstate || ' ' || outcome.message, outcome.result), outcome.is_unchanged) is distinct from (
          coalesce(damaged.recompiled, 'recompiled'), true
        )
    $$,
    damage.situation
  ),
  format('%s: the plan says the same', damage.situation)
)
from damage;

-- What is compiled anew is whole.

select is_empty(
  $$
    select damaged.situation, damaged.queue_mode, fault.answer
    from damaged
    cross join lateral pg_temp.after(
      format('%s; %s', damaged.change, pg_temp.recompilation('status', damaged.flow_slug, damaged.queue_mode)),
      format(
        'select detail from pgflow.check_integrity(%L) union all select queue_name from pg_temp.messages(%L)',
        damaged.flow_slug, damaged.flow_slug
      )
    ) as fault (answer)
    where damaged.recompiled is null
  $$,
  'after a recompilation the flow is sound and its queues are empty'
);
select is_empty(
  $$
    select damaged.situation, damaged.queue_mode, left_over.answer
    from damaged
    cross join lateral pg_temp.after(
      format('%s; %s', damaged.change, pg_temp.recompilation('status', damaged.flow_slug, damaged.queue_mode)),
      format('select pg_temp.left_of(%L)', damaged.queue_name)
    ) as left_over (answer)
    where damaged.recompiled is null
      and left_over.answer <> format(
        'q_%1$s, a_%1$s, %1$s (listed), owned by %2$s',
        damaged.queue_name,
        case damaged.queue_mode when 'flow' then 'flow "Whole"' else 'step "a" of flow "Steps"' end
      )
  $$,
  'and has each queue once, in its own spelling'
);

select results_eq(
  format(
    $$
      select persistence.answer
      from damaged
      cross join lateral pg_temp.after(
        format('%%s; %%s', damaged.change, pg_temp.recompilation('status', damaged.flow_slug, damaged.queue_mode)),
        format('select relpersistence from pg_class where oid = to_regclass(%%L)', 'pgmq.q_' || damaged.queue_name)
      ) as persistence (answer)
      where damaged.situation = 'made unlogged'
    $$
  ),
  $$ values ('p'), ('p') $$,
  'a queue that was made unlogged is logged again'
);

-- The way out that a refusal names. The statements of its hint are run as they stand there.

select is_empty(
  format(
    $$
      select damaged.queue_mode, outcome.hint, again.*
      from damaged
      cross join lateral pg_temp.outcome(
        damaged.change, pg_temp.recompilation('status', damaged.flow_slug, damaged.queue_mode)
      ) as outcome
      cross join lateral pg_temp.outcome(
        concat_ws('; ', damaged.change, coalesce(pg_temp.statements(outcome.hint), damaged.way_back)),
        pg_temp.recompilation('status', damaged.flow_slug, damaged.queue_mode)
      ) as again
      where damaged.situation = %L
        and again.result is distinct from 'recompiled'
    $$,
    damage.situation
  ),
  format('%s: after what the hint says, the flow is compiled anew', damage.situation)
)
from damage
where damage.recompiled is not null;

select * from finish();
rollback;
