create function pgflow.physical_queues(queue_names text[])
returns table (
  queue_name text,
  spellings text[],
  created_at timestamptz,
  has_queue_table boolean,
  has_archive_table boolean,
  relations text[],
  is_taken boolean
)
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
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
  there as (
    select
      wanted.queue_name,
      array_agg(class.relname::text order by class.relname) as relations,
      bool_or(class.relname = 'q_' || wanted.queue_name and class.relkind in ('r', 'p')) as has_queue_table,
      bool_or(class.relname = 'a_' || wanted.queue_name and class.relkind in ('r', 'p')) as has_archive_table
    from wanted
    cross join lateral unnest(pgflow.queue_relations(wanted.queue_name)) as relation (name)
    inner join pg_class as class
      on class.relnamespace = 'pgmq'::regnamespace
      and class.relname = relation.name
    group by wanted.queue_name
  )
  select
    wanted.queue_name,
    coalesce(listed.spellings, '{}'),
    listed.created_at,
    coalesce(there.has_queue_table, false),
    coalesce(there.has_archive_table, false),
    coalesce(there.relations, '{}'),
    coalesce(listed.queue_name, there.queue_name) is not null
  from wanted
  left join listed
    on listed.queue_name = wanted.queue_name
  left join there
    on there.queue_name = wanted.queue_name
  order by wanted.queue_name collate "C";
$function$;

comment on function pgflow.physical_queues(text[]) is
'Internal: what PGMQ has under each of the canonical queue names given, one row a name: the spellings that it lists, when the newest was made, whether its tables are there, which relations of queue_relations() are, and whether any of all this is in the way of making the queue.';
