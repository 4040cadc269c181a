/**
 * Creates the gateway's tables in numbered steps that only add to them. The previous version of the gateway therefore
 * works on upgraded tables, and processes can be upgraded one after the other.
 */
import type { PoolClient } from 'pg'
import { createPostgresTables } from 'tidemark/postgres'
import { type Database, runTransaction } from './database.ts'

interface Migration {
  readonly number: number
  readonly name: string
  readonly sql: string
}

/** The steps in order. A released step is never changed; later steps only add tables and columns. */
export const MIGRATIONS: readonly Migration[] = [
  {
    number: 1,
    name: 'keys, spending, sessions, audit',
    sql: `
      create table gateway_keys (
        id text primary key, name text not null, hash bytea not null unique, hint text not null,
        budget numeric, period text not null default 'month', models text[],
        created_at timestamptz not null default now(), revoked_at timestamptz
      );
      create unique index gateway_keys_name on gateway_keys (name) where revoked_at is null;
      create table gateway_spending (
        key text not null references gateway_keys (id), period date not null,
        spent numeric not null default 0, reserved numeric not null default 0, warned_at timestamptz,
        primary key (key, period)
      );
      create table gateway_calls (
        id uuid primary key, key text not null, period date not null, process uuid not null,
        model text not null, session text, started_at timestamptz not null default now(), reserved numeric not null,
        settled_at timestamptz, cost numeric, is_estimated boolean,
        input bigint, cache_read bigint, cache_write bigint, output bigint
      );
      create index gateway_calls_open on gateway_calls (process) where settled_at is null;
      create index gateway_calls_by_key on gateway_calls (key, started_at);
      create table gateway_processes (
        id uuid primary key, started_at timestamptz not null default now(), seen_at timestamptz not null default now()
      );
      create table gateway_sessions (
        scope text not null, session text not null,
        created_at timestamptz not null default now(), used_at timestamptz not null default now(),
        primary key (scope, session)
      );
      create index gateway_sessions_used on gateway_sessions (scope, used_at desc);
      create table gateway_blobs (
        scope text not null, id text not null, bytes bytea not null, primary key (scope, id)
      );
      create table gateway_audit (
        id bigint generated always as identity primary key, at timestamptz not null default now(),
        actor text not null, action text not null, subject text not null, details text not null default ''
      );`,
  },
  {
    number: 2,
    name: 'teams, viewers and their page',
    sql: `
      alter table gateway_keys add column team text, add column is_viewer boolean not null default false;
      create table gateway_sign_ins (
        hash bytea primary key, key text not null references gateway_keys (id),
        created_at timestamptz not null default now(), expires_at timestamptz not null
      );
      create index gateway_sign_ins_by_key on gateway_sign_ins (key);
      create table gateway_reports (
        scope text not null, session text not null, format integer not null, lines integer not null,
        made_at timestamptz not null default now(), listed text, why text, losses jsonb not null default '[]',
        primary key (scope, session),
        foreign key (scope, session) references gateway_sessions (scope, session) on delete cascade
      );`,
  },
  {
    number: 3,
    name: 'sessions by the beginning of their ids',
    sql: 'create index gateway_sessions_by_id on gateway_sessions (scope, (session collate "C"))',
  },
  {
    number: 4,
    name: 'objects in a store of their own',
    sql: `
      create table gateway_objects (
        name text primary key, scope text not null, session text, bytes bigint not null,
        created_at timestamptz not null default now(), deleted_at timestamptz
      );
      create index gateway_objects_by_session on gateway_objects (scope, session);
      create index gateway_objects_deleted on gateway_objects (created_at) where deleted_at is not null;
      alter table gateway_blobs alter column bytes drop not null, add column object text;`,
  },
]

/** Number of the advisory lock for the steps, so that processes that start together wait for each other. */
const MIGRATION_LOCK = 7_433_302

/** Creates the tables or upgrades them to this version. Returns the names of the steps that ran, and leaves newer tables. */
export async function migrateDatabase(
  pool: Database,
  steps: readonly Migration[] = MIGRATIONS,
): Promise<readonly string[]> {
  await createPostgresTables(pool)
  return runTransaction(pool, async (connection) => {
    await connection.query(`select pg_advisory_xact_lock(${MIGRATION_LOCK})`)
    await connection.query(
      'create table if not exists gateway_migrations (number integer primary key, name text not null, at timestamptz not null default now())',
    )
    const known = await readMigrations(connection)
    const due = steps.filter(({ number }) => !known.has(number))
    for (const { number, name, sql } of due) {
      await connection.query(sql)
      await connection.query('insert into gateway_migrations (number, name) values ($1, $2)', [number, name])
    }
    return due.map(({ number, name }) => `${number} ${name}`)
  })
}

async function readMigrations(connection: PoolClient): Promise<ReadonlySet<number>> {
  const { rows } = await connection.query<{ number: number }>('select number from gateway_migrations')
  return new Set(rows.map(({ number }) => number))
}
