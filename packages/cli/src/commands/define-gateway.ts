/** Defines the commands of `tidemark gateway`, with their arguments, options and help. */
import type { Terminal } from '@tidemark/terminal/terminal'
import type { Command } from 'commander'
import type { AddKeyOptions, DatabaseOptions, GatewayCommandOptions } from './gateway.ts'
import {
  MAX_BODY_HELP,
  parseDollars,
  parseMegabytes,
  parsePort,
  parsePositive,
  parseTokenCount,
  parseUrl,
  parseWholeNumber,
} from './option-parsers.ts'

/** Adds `tidemark gateway` with its subcommands. The gateway package is loaded only when one of them runs. */
export function addGatewayCommands(program: Command, terminal: Terminal, outcome: { code: number }): void {
  const gateway = program
    .command('gateway')
    .description('serve many users: sessions, keys and budgets in Postgres, for any number of processes')
    .option('--database <url>', 'postgres://…; without it, one process keeps sessions in files, without keys')
    .option('--objects <url>', 'a bucket of an S3-compatible store, for what is larger than 256 KB', parseUrl)
    .option('--port <number>', 'port to listen on; default: 8788, 0 for any free port', parsePort)
    .option('--host <address>', 'address to listen on; default: 127.0.0.1')
    .option('--upstream <url>', 'the Messages API; default: https://api.anthropic.com', parseUrl)
    .option('--upstream-openai <url>', "OpenAI's APIs; default: https://api.openai.com", parseUrl)
    .option('--max-body <megabytes>', MAX_BODY_HELP, parseMegabytes)
    .option('--window <tokens>', "a context window smaller than the catalogue's", parseTokenCount)
    .option(
      '--retention <days>',
      'delete sessions without a request for so long; default: never',
      parsePositive,
    )
    .option('--idle <seconds>', 'close a session in memory after so long; default: 300', parsePositive)
    .option(
      '--drain <seconds>',
      'time for running answers to end after SIGTERM; default: 30',
      parseWholeNumber,
    )
    .option(
      '--page-url <url>',
      'where browsers of others reach the page; default: only this machine',
      parseUrl,
    )
    .option('--json', 'print one line { "url": ..., "openaiUrl": ... } once it listens; logs are JSON lines')
    .action(async (choices: GatewayCommandOptions) => {
      const { runGatewayCommand } = await import('./gateway.ts')
      outcome.code = await runGatewayCommand(choices, terminal)
    })
  addGatewayKeys(gateway, terminal, outcome)
  gateway
    .command('delete')
    .description('delete a session of a key, with its blobs')
    .argument('<key>', 'the name of the key')
    .argument('<session>', 'the id of the session')
    .requiredOption('--database <url>', 'postgres://…')
    .action(async (key: string, session: string, choices: DatabaseOptions) => {
      const { deleteGatewaySession } = await import('./gateway.ts')
      outcome.code = await deleteGatewaySession({ key, session }, choices, terminal)
    })
  gateway
    .command('audit')
    .description('list who added and revoked keys and deleted sessions, the newest first')
    .requiredOption('--database <url>', 'postgres://…')
    .option('--json', 'print one JSON value: { audit }')
    .action(async (choices: DatabaseOptions) => {
      const { printGatewayAudit } = await import('./gateway.ts')
      outcome.code = await printGatewayAudit(choices, terminal)
    })
}

function addGatewayKeys(gateway: Command, terminal: Terminal, outcome: { code: number }): void {
  const keys = gateway.command('keys').description('add, list and revoke keys')
  keys
    .command('add')
    .description('add a key and print it: it cannot be read again')
    .argument('<name>', 'who or what uses it')
    .requiredOption('--database <url>', 'postgres://…')
    .option('--budget <usd>', 'most dollars in a period; default: no limit', parseDollars)
    .option('--period <name>', 'day, week, month or total; default: month')
    .option('--models <names...>', 'models that it may call, as claude-sonnet-5-5 or gpt-6*; default: all')
    .option('--team <name>', 'the team that it is counted with on the page')
    .option('--viewer', 'it only opens the page: all sessions, with --team those of the team')
    .option('--json', 'print one JSON value: { key }')
    .action(async (name: string, choices: AddKeyOptions) => {
      const { addGatewayKey } = await import('./gateway.ts')
      outcome.code = await addGatewayKey(name, choices, terminal)
    })
  keys
    .command('list', { isDefault: true })
    .description('list the keys with their spending')
    .requiredOption('--database <url>', 'postgres://…')
    .option('--json', 'print one JSON value: { keys }')
    .action(async (choices: DatabaseOptions) => {
      const { printGatewayKeys } = await import('./gateway.ts')
      outcome.code = await printGatewayKeys(choices, terminal)
    })
  keys
    .command('revoke')
    .description('revoke a key: its next request is refused by every process')
    .argument('<name>', 'the name of the key')
    .requiredOption('--database <url>', 'postgres://…')
    .action(async (name: string, choices: DatabaseOptions) => {
      const { revokeGatewayKey } = await import('./gateway.ts')
      outcome.code = await revokeGatewayKey(name, choices, terminal)
    })
}
