/** What documents and examples show is run as it stands: no network, no key. `npm run types` checks their types. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { serve } from '@tidemark/simulator'
import { describe, expect, it, onTestFinished } from 'vitest'
import { LIBRARY_ARGUMENTS } from '../../packages/tidemark/test/child-process.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Nothing of the machine's own: an example that needed a key would fail. */
const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }

function snippets(path: string): readonly string[] {
  const document = readFileSync(join(ROOT, path), 'utf8')
  return [...document.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code = '']) => code)
}

async function run(program: string, given: Readonly<Record<string, string>> = {}): Promise<string> {
  const flags = [...LIBRARY_ARGUMENTS, '--input-type=module-typescript', '-']
  const child = spawn(process.execPath, flags, {
    cwd: ROOT,
    env: { ...env, ...given },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.end(program)
  const [said, wrong, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  if (code !== 0) throw new Error(wrong)
  return said
}

describe('the README', () => {
  it('names the versions of Node that the packages ask for', () => {
    const readEngine = (path: string): string => {
      const { engines } = JSON.parse(readFileSync(join(ROOT, path, 'package.json'), 'utf8'))
      return String(engines.node).replace('>=', '')
    }
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8').replaceAll('\n', ' ')
    const [library, command, repository] = ['packages/tidemark', 'packages/cli', '.'].map(readEngine)
    expect(readme).toContain(`any Node from ${repository} on can run`)
    expect(readme).toContain(
      `the packages need Node ${library} or newer, and the command \`tidemark\` ${command}.`,
    )
    expect(readEngine('packages/simulator')).toBe(library)
  })
})

describe('the example in the README', () => {
  const [example = ''] = snippets('README.md')

  it('has at most 15 lines', () => {
    expect(example.trimEnd().split('\n').length).toBeLessThanOrEqual(15)
  })

  it('runs: tools are called, a compaction makes room and is undone', async () => {
    const lines = (await run(example)).trimEnd().split('\n')
    expect(lines).toContain('Read')
    const [before = 0, after = 0] = (lines.at(-2) ?? '')
      .split(' -> ')
      .map((part) => Number.parseInt(part, 10))
    expect(after).toBeLessThan(before)
    expect(lines.at(-1)).toMatch(/^true 9\d% left$/)
  })
})

it('docs/library.md is one program that runs', async () => {
  const said = await run(snippets('docs/library.md').join('\n'))
  expect(said).toContain('now claude-haiku-5-5')
})

it('docs/getting-started.md has a program that runs, with a server in place of the model', async () => {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-'))
  onTestFinished(() => rmSync(home, { recursive: true }))
  const { url, close } = await serve({
    script: () => ({ blocks: [{ type: 'text', text: 'Monday.' }] }),
  })
  onTestFinished(close)
  const server = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'any', TIDEMARK_HOME: home }
  expect(await run(snippets('docs/getting-started.md').join('\n'), server)).toBe('Monday. 100% left\n')
})

it('docs/openai.md is one program that runs: a session, a client, a local server', async () => {
  const said = await run(snippets('docs/openai.md').join('\n'))
  expect(said).toMatch(/\n0\.\d+\ncompleted\nqwen3-coder 32768\n$/)
})

it('docs/providers.md is one program that runs: each server answers', async () => {
  const names = ['OpenAI', 'Azure', 'openrouter', 'deepseek', 'kimi', 'vllm', 'ollama', 'llama.cpp']
  const said = await run(snippets('docs/providers.md').join('\n'))
  expect(said).toBe(names.map((name) => `${name}: Hello.\n`).join(''))
})

it('docs/policy.md is one program that runs: a preset as it is, and with changes', async () => {
  expect(await run(snippets('docs/policy.md').join('\n'))).toBe('5m\n100\n100\n')
})

it('docs/memory-files.md is one program that runs', async () => {
  const said = await run(snippets('docs/memory-files.md').join('\n'))
  for (const text of ['Amounts are in cents.', 'Tests stand beside the file.', 'Selected in the editor'])
    expect(said).toContain(text)
})

it('docs/system-prompt.md is one program that runs: the prompt keeps its bytes, and a change is appended', async () => {
  const said = await run(snippets('docs/system-prompt.md').join('\n'))
  expect(said).toBe('2 blocks, cached\ntrue true\ntrue\n')
})

it('docs/events.md is one program that runs: an answer piece by piece, and a compaction', async () => {
  const said = await run(snippets('docs/events.md').join('\n'))
  expect(said).toBe('The sum is 42 cents.\nmodel: smaller\n')
})

it('docs/telemetry.md is one program that runs', async () => {
  const said = await run(snippets('docs/telemetry.md').join('\n'))
  expect(said).toMatch(/^chat claude-sonnet-5-5\nexecute_tool \w+\n[\s\S]*^invoke_agent\n$/m)
})

it('docs/drop-in.md is one program that runs', async () => {
  const said = await run(snippets('docs/drop-in.md').join('\n'))
  expect(said).toMatch(
    /^\d\d messages, refused: 0\nend_turn\nSay hello\.\n0 tokens are expected from the cache\n1 message\n$/,
  )
})

describe('examples', () => {
  const lastLines: Readonly<Record<string, RegExp>> = {
    'agent.ts':
      /● Edit .*\n {2}May it run Edit .* y\n[\s\S]*rm -rf build.* n, keep the build\n[\s\S]*\[\d{4} tokens, \d+% left · \$0\.\d+ spent[\s\S]*Compacted to \d{3,4} tokens\n[\s\S]*Undone: compact, 0 messages have left\n\[\d{4} tokens[\s\S]*> \/exit\n$/,
    'hooks-and-carriers.ts': /^the board is as it is now\nwhat was read counts as unread\n$/m,
    'own-loop.ts': /^\d+ tokens \(measured\), 100% left, \d+ messages\nspent: \$0\.\d+\n$/m,
    'run-loop.ts': /^compacted: \d+ -> \d+ tokens\nundone: all that was there is there again\n$/m,
  }

  it('the agent has at most 150 lines, and imports public names only', () => {
    const text = readFileSync(join(ROOT, 'examples', 'agent.ts'), 'utf8')
    const sources = [...text.matchAll(/from '((?:@tidemark\/|tidemark)[^']*)'/g)].map(([, source]) => source)
    expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(150)
    expect(sources).toEqual(['@tidemark/simulator', 'tidemark', 'tidemark/tools'])
  })

  it.each(readdirSync(join(ROOT, 'examples')).filter((name) => name.endsWith('.ts')))(
    '%s runs',
    async (name) => {
      const flags = [...LIBRARY_ARGUMENTS, join(ROOT, 'examples', name)]
      const { stdout } = await promisify(execFile)(process.execPath, flags, { cwd: ROOT, env })
      expect(stdout).toMatch(lastLines[name] ?? /nobody says how this example ends/)
    },
  )
})
