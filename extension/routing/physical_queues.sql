create function pgflow.physical_queues(queue_names text[])
returns table (
  queue_name text,
  spellings text[],
  created_at timestamptz,
  has_queue_table boolean,
  has_archive_table boolean,
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
  )
  select
    wanted.queue_name,
    coalesce(listed.spellings, '{}'),
    listed.created_at,
    coalesce(queue_relation.relkind in ('r', 'p'), false),
    coalesce(archive_relation.relkind in ('r', 'p'), false),
    -- An index or a view of that name keeps PGMQ from making its table just as well.
    coalesce(listed.queue_name, queue_relation.relname, archive_relation.relname) is not null
  from wanted
  left join listed
    on listed.queue_name = wanted.queue_name
  left join pg_class as queue_relation
    on queue_relation.relnamespace = 'pgmq'::regnamespace
    and queue_relation.relname = 'q_' || wanted.queue_name
  left join pg_class as archive_relation
    on archive_relation.relnamespace = 'pgmq'::regnamespace
    and archive_relation.relname = 'a_' || wanted.queue_name
  order by wanted.queue_name collate "C";
$function$;

comment on function pgflow.physical_queues(text[]) is
'Internal: what PGMQ has under each of the canonical queue names given, one row a name: the spellings that it lists, when the newest was made, whether its tables are there, and whether anything at all is in the way of making it.';
