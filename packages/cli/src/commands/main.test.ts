import type { Terminal } from '@tidemark/terminal/terminal'
import { describe, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { describeOutputError, main } from './main.ts'

async function run(args: readonly string[], given: Partial<Terminal> = {}) {
  let out = ''
  let err = ''
  const terminal: Terminal = {
    write: (text) => {
      out += text
    },
    warn: (text) => {
      err += text
    },
    env: {},
    isTty: false,
    columns: 100,
    ...given,
  }
  const code = await main(args, terminal)
  return { code, out, err }
}

describe('help and version', () => {
  it('prints the version and nothing else', async () => {
    expect(await run(['--version'])).toEqual({ code: 0, out: `${manifest.version}\n`, err: '' })
  })

  it('prints the help on standard output, without colours if it is no terminal', async () => {
    const { code, out, err } = await run(['--help'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatchInlineSnapshot(`
      "Usage: tidemark [options] [command]

      A context engine for long-running LLM agents.

      Options:
        -V, --version                 print the version
        -h, --help                    print this help

      Commands:
        chat [options]                run an agent in this folder: it reads, edits and runs what you
                                      permit
        trust [options] [folder]      show what a project wants to set and run, and trust it
        inspect [options] [paths...]  show what filled the context of past sessions, and what they cost
        ui [options] [paths...]       open a page in the browser that shows what past and running sessions
                                      kept, lost and cost
        compact [options] <file>      compact a session: shows plan, draft and receipt; -o writes a new
                                      session that continues from there
        sessions                      list, search and delete Tidemark's own sessions
        repair [options] <file>       write a clean copy of a damaged session; the session itself is not
                                      changed
        export [options] <file>       write a session as Markdown: all messages, with rewrites, tool calls
                                      and ids
        notes [options] <file>        print the notes of a session, kept from its log without a model:
                                      task, todos, files, errors
        replay [options] [paths...]   what past sessions would have cost under other policies, and what
                                      the model would have had in view
        simulate [options]            serve the Messages API and OpenAI's APIs, with a scripted model and
                                      a working prompt cache
        watch [options]               stand between an agent and the API on this machine, and show what
                                      its requests cost
        gateway [options]             serve many users: sessions, keys and budgets in Postgres, for any
                                      number of processes
        sample [options]              show a sample session three ways: its log, the context of the model,
                                      and the request
        tour [options]                see it work: the same job without and with Tidemark, on real files
                                      and a simulated model
        help [command]                print the help of a command
      "
    `)
  })

  it.each([
    [['help'], 'Usage: tidemark [options] [command]'],
    [['help', 'sample'], 'Usage: tidemark sample [options]'],
    [['sample', '--help'], 'Usage: tidemark sample [options]'],
    [['sessions', '--help'], 'Usage: tidemark sessions [options] [command]'],
    [['sessions', 'help', 'find'], 'Usage: tidemark sessions find [options] <text>'],
  ])('of %j', async (args, first) => {
    const { code, out, err } = await run(args)
    expect([code, out.split('\n')[0], err]).toEqual([0, first, ''])
  })

  it('without any argument is the help', async () => {
    expect(await run([])).toEqual(await run(['--help']))
  })

  it('has colours where they are wanted', async () => {
    const { out } = await run(['--help'], { isTty: true })
    expect(out.startsWith('\u001b[1mUsage:\u001b[22m')).toBe(true)
  })
})

describe('wrong use is one line and exit code 2', () => {
  it.each([
    [['sampl'], "tidemark: unknown command 'sampl' (Did you mean sample?) See tidemark --help.\n"],
    [['fly'], "tidemark: unknown command 'fly'. See tidemark --help.\n"],
    [
      ['sample', '--jsn'],
      "tidemark: unknown option '--jsn' (Did you mean --json?) See tidemark sample --help.\n",
    ],
    [['--nope'], "tidemark: unknown option '--nope'. See tidemark --help.\n"],
    [
      ['sample', 'x'],
      "tidemark: too many arguments for 'sample'. Expected 0 arguments but got 1: x. See tidemark sample --help.\n",
    ],
    [
      ['simulat', '--help'],
      "tidemark: unknown command 'simulat' (Did you mean simulate?) See tidemark --help.\n",
    ],
    [['fly', '-h'], "tidemark: unknown command 'fly'. See tidemark --help.\n"],
    [
      ['help', 'simulat'],
      "tidemark: unknown command 'simulat' (Did you mean simulate?) See tidemark --help.\n",
    ],
    [
      ['sessions', 'bogus'],
      "tidemark: unknown command 'sessions bogus': expected list, find or delete. See tidemark sessions --help.\n",
    ],
    [
      ['sessions', 'bogus', '--help'],
      "tidemark: unknown command 'sessions bogus': expected list, find or delete. See tidemark sessions --help.\n",
    ],
    [
      ['sessions', 'find'],
      "tidemark: missing required argument 'text'. See tidemark sessions find --help.\n",
    ],
  ])('%j', async (args, err) => {
    expect(await run(args)).toEqual({ code: 2, out: '', err })
  })
})

describe('sample', () => {
  it('shows log, context and request', async () => {
    const { code, out, err } = await run(['sample'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out.split('\n').filter((line) => /^The /.test(line))).toEqual([
      'The log      43 records, append-only: a record is never changed or removed',
      'The context  21 records that the model sees next',
      'The request  11 messages: the context as sent to the API; valid for the strictest provider',
      'The context',
      'The request to claude-sonnet-5-5, 5 tools',
    ])
    expect(Math.max(...out.split('\n').map((line) => [...line].length))).toBeLessThanOrEqual(100)
  })

  it('fits a narrow screen', async () => {
    const { out } = await run(['sample'], { columns: 60 })
    expect(out.split('\n').filter((line) => [...line].length > 60)).toEqual([])
    expect(out.split('\n').slice(2, 8)).toEqual([
      'The log      43 records, append-only: a record is never',
      '             changed or removed',
      'The context  21 records that the model sees next',
      'The request  11 messages: the context as sent to the API;',
      '             valid for the strictest provider',
      '',
    ])
  })

  it('with --json prints one JSON value and nothing else', async () => {
    const { code, out, err } = await run(['sample', '--json'], { isTty: true })
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const { session, view, request, findings } = JSON.parse(out)
    expect(session).toEqual({ id: '3f9d2c6a-5b1e-4f0a-9c7d-2a8e6b40d101', records: 43, damage: 0 })
    expect([view.length, request.messages.length, findings]).toEqual([21, 11, []])
  })
})

describe('a failure', () => {
  const broken: Partial<Terminal> = {
    write: () => {
      throw new Error('the paper\nis out')
    },
  }

  it('is one line and exit code 1', async () => {
    expect(await run(['sample'], broken)).toEqual({
      code: 1,
      out: '',
      err: 'tidemark: the paper is out (a bug in tidemark; TIDEMARK_DEBUG=1 shows the stack)\n',
    })
  })

  it('shows its stack to those who ask for it', async () => {
    const { code, err } = await run(['sample'], { ...broken, env: { TIDEMARK_DEBUG: '1' } })
    expect([code, err.split('\n').length > 3]).toEqual([1, true])
  })
})

const failed = (code: string, message: string) => Object.assign(new Error(message), { code })

it('a reader that has seen enough is no fault', () => {
  expect(describeOutputError(failed('EPIPE', 'broken pipe'))).toEqual({ code: undefined, line: '' })
})

it('any other fault of standard output is one line', () => {
  expect(describeOutputError(failed('ENOSPC', 'ENOSPC: no space left on device, write'))).toEqual({
    code: 1,
    line: 'tidemark: the output could not be written: ENOSPC: no space left on device, write\n',
  })
})
