create function pgflow.physical_queues(queue_names text[])
returns table (
  queue_name text,
  spellings text[],
  created_at timestamptz,
  has_queue_table boolean,
  has_archive_table boolean,
  relations text[],
  intruders text[],
  name_holders text[],
  is_taken boolean
)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
-- The planner guesses at thousands of queues: compiling such a plan takes a second, running it milliseconds.
set jit to off
as $function$
begin
  -- In PL/pgSQL, since planning it takes longer than running it, and here the plan is kept.
  return query
  with wanted as (
    select distinct wanted.queue_name
    from unnest(physical_queues.queue_names) as wanted (queue_name)
  ),
  -- PGMQ folds case in the names of its tables, but not in its list of queues.
  listed as (
    select
      wanted.queue_name,
      array_agg(meta.queue_name::text order by meta.queue_name collate "C") as spellings,
      -- The newest: whoever lists or makes the queue again must show.
      max(meta.created_at) as created_at
    from wanted
    inner join pgmq.meta as meta
      on lower(meta.queue_name collate "C") = wanted.queue_name
    group by wanted.queue_name
  ),
  found as materialized (
    select
      wanted.queue_name,
      class.relname::text as name,
      class.oid,
      -- An index or a sequence counts as the table that it belongs to.
      coalesce(index.indrelid, sequence.refobjid, class.oid) as holder,
      -- What has the table's name but gives no ids to messages is no queue.
      class.relkind in ('r', 'p') and exists (
        select
        from pg_attribute as id
        where id.attrelid = class.oid
          and id.attname = 'msg_id'
          and (id.attidentity <> '' or class.relname = 'a_' || wanted.queue_name)
      ) as is_table
    from wanted
    cross join lateral unnest(pgflow.queue_relations(wanted.queue_name)) as relation (name)
    inner join pg_class as class
      on class.relnamespace = 'pgmq'::regnamespace
      and class.relname = relation.name
    left join pg_index as index
      on index.indexrelid = class.oid
    left join pg_depend as sequence
      on class.relkind = 'S'
      and sequence.classid = 'pg_class'::regclass
      and sequence.objid = class.oid
      and sequence.refclassid = 'pg_class'::regclass
      and sequence.deptype in ('a', 'i')
  ),
  piece as (
    select
      found.queue_name,
      found.name,
      found.is_table,
      case
        when not found.is_table and found.holder = found.oid and place.is_own then (
          select format('drop %s %s', replace(object.type, 'composite ', ''), object.identity)
          from pg_identify_object('pg_class'::regclass, found.oid, 0) as object
        )
      end as intruder,
      case when not place.is_own then found.holder::regclass::text end as name_holder
    from found
    cross join lateral (
      select found.holder::regclass::text in ('pgmq.q_' || found.queue_name, 'pgmq.a_' || found.queue_name)
    ) as place (is_own)
    union all
    -- A table needs a type of its name, too.
    select wanted.queue_name, type.typname, false, format('drop type pgmq.%I', type.typname), null
    from wanted
    cross join lateral unnest(array['q_' || wanted.queue_name, 'a_' || wanted.queue_name]) as needed (name)
    inner join pg_type as type
      on type.typname = needed.name
      and type.typnamespace = 'pgmq'::regnamespace
      and type.typrelid = 0
  ),
  there as (
    select
      piece.queue_name,
      array_agg(piece.name order by piece.name collate "C") as relations,
      bool_or(piece.is_table and piece.name = 'q_' || piece.queue_name) as has_queue_table,
      bool_or(piece.is_table and piece.name = 'a_' || piece.queue_name) as has_archive_table,
      array_remove(array_agg(piece.intruder order by piece.name collate "C"), null) as intruders,
      array_remove(array_agg(distinct piece.name_holder collate "C"), null) as name_holders
    from piece
    group by piece.queue_name
  )
  select
    wanted.queue_name,
    coalesce(listed.spellings, '{}'),
    listed.created_at,
    coalesce(there.has_queue_table, false),
    coalesce(there.has_archive_table, false),
    coalesce(there.relations, '{}'),
    coalesce(there.intruders, '{}'),
    coalesce(there.name_holders, '{}'),
    coalesce(listed.queue_name, there.queue_name) is not null
  from wanted
  left join listed
    on listed.queue_name = wanted.queue_name
  left join there
    on there.queue_name = wanted.queue_name
  order by wanted.queue_name collate "C";
end
$function$;

comment on function pgflow.physical_queues(text[]) is
'Internal: what PGMQ has under each of the canonical queue names given, one row a name: the spellings that it lists, when the newest was made, whether its tables are there, and which relations of queue_relations() are. intruders: what has the name of one of its tables and is no such table, each as the statement that drops it. name_holders: tables of other names that have, or whose indexes and sequences have, a name that the queue needs. is_taken: any of all this is there.';
