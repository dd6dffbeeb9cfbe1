create function pgflow.queue_removal(queue_name text)
returns text[]
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select case
    when way.is_pgmqs then array[format('select pgmq.drop_queue(%L)', physical.spellings[1])]
    else array_remove(
      array[
        case when physical.has_queue_table then format('drop table pgmq.%I', 'q_' || physical.queue_name) end,
        case when physical.has_archive_table then format('drop table pgmq.%I', 'a_' || physical.queue_name) end,
        case
          when physical.spellings <> '{}' then
            format('delete from pgmq.meta where lower(queue_name collate "C") = %L', physical.queue_name)
        end
      ],
      null
    )
  end
  from pgflow.physical_queues(array[queue_removal.queue_name]) as physical
  cross join lateral (
    -- PGMQ's own way leaves what belongs to another spelling, gives up where the table is gone, asks pg_partman about
    -- a partitioned queue, and folds a spelling as the database's locale does, in Turkish to something else.
    select
      physical.has_queue_table
      and cardinality(physical.spellings) = 1
      and physical.intruders = '{}'
      and pgmq.format_table_name(physical.spellings[1], 'q') = 'q_' || physical.queue_name
      and not exists (
        select
        from pgmq.meta as meta
        where meta.queue_name = physical.spellings[1]
          and meta.is_partitioned
          and not exists (select from pg_extension as extension where extension.extname = 'pg_partman')
      )
  ) as way (is_pgmqs);
$function$;

comment on function pgflow.queue_removal(text) is
'Internal: the statements that drop a queue (canonical name) with its archive and everything that PGMQ lists of it, in order; none when there is nothing. What has the name of a table of the queue and is none stays. Checks no ownership.';
