import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, it } from 'vitest'
import { createAgentFolder } from '../../test/agent-folder.ts'
import { createBashTools } from './bash-tools.ts'
import type { AgentTool } from './tool-definition.ts'

function open(given: Parameters<typeof createAgentFolder>[0] = {}) {
  const folder = createAgentFolder(given)
  const tools = createBashTools(folder.environment) as Record<'Bash' | 'BashOutput' | 'KillShell', AgentTool>
  return {
    folder,
    bash: (command: string, input: object = {}, context: object = {}) =>
      folder.call(tools.Bash, { command, ...input }, context),
    output: (bash_id: string, input: object = {}) => folder.call(tools.BashOutput, { bash_id, ...input }),
    kill: (shell_id: string) => folder.call(tools.KillShell, { shell_id }),
  }
}

/** Returns a number of seconds that no other process sleeps for, so that a process can be found by it. */
function createDuration(): string {
  return (60 + Math.random()).toFixed(9)
}

/** Finds running processes by a number that only their command line has. */
function findProcesses(mark: string): readonly string[] {
  const lines = execFileSync('ps', ['-eo', 'stat,args'], { encoding: 'utf8' }).split('\n')
  return lines.filter((line) => line.includes(mark) && !line.startsWith('Z'))
}

/** Waits until a command has started this `sleep`. */
function waitForSleep(seconds: string): Promise<void> {
  return waitUntil(() => findProcesses(seconds).some((line) => /^\S+\s+sleep/.test(line)))
}

async function waitUntil(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  await expect.poll(isTrue).toBe(true)
}

describe('a command', () => {
  it('answers with output and errors in order', async () => {
    const { bash } = open()
    const { text, isError } = await bash('for i in 1 2 3; do echo "out $i"; echo "err $i" >&2; done')
    expect({ text, isError }).toEqual({ text: 'out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3', isError: false })
  })

  it.each([
    ['true', '(no output)', false],
    ['echo bad; exit 3', 'Exit code: 3\nOutput:\nbad', true],
    ['grep nothing /dev/null', 'Exit code: 1\nOutput:', false],
    ['kill -SEGV $$', 'The command was ended by SIGSEGV.\nOutput:', false],
    ['cat', '(no output)', false],
    ['printf "\\033[31mred\\033[0m"', 'red', false],
    ['echo "it' + "'" + 's"\necho $((1+1))', "it's\n2", false],
    [' ', 'command is empty.', true],
  ])('%s', async (command, text, isError) => {
    expect(await open().bash(command)).toMatchObject({ text, isError })
  })

  it('that is too long for the system is told so', async () => {
    const { text, isError } = await open().bash(`echo ${'x'.repeat(200_000)}`)
    expect({ text, isError }).toEqual({
      text: expect.stringMatching(/^The command is too long\./),
      isError: true,
    })
  })

  it('with a syntax error is told so', async () => {
    const { text, isError } = await open().bash('if then')
    expect({ isError, text }).toEqual({ isError: true, text: expect.stringContaining('syntax error') })
  })

  it('starts where the last one ended, even if that one failed', async () => {
    const { folder, bash } = open()
    mkdirSync(folder.path("it's/sub"), { recursive: true })
    await bash('cd "it\'s/sub" && exit 4')
    expect((await bash('pwd')).text).toBe(folder.path("it's/sub"))
    rmSync(folder.path("it's"), { recursive: true })
    expect((await bash('pwd')).text).toBe(folder.environment.cwd)
    expect(readdirSync(folder.environment.spillFolder)).toEqual([])
  })

  it('does not start outside the permitted folders, by a link neither', async () => {
    const { folder, bash } = open()
    symlinkSync(tmpdir(), folder.path('link'))
    const { text } = await bash('cd link && echo there')
    expect(text).toBe(
      `there\n[The next command starts in ${folder.environment.cwd} again, because ${realpathSync(tmpdir())} is outside the permitted directories.]`,
    )
    expect((await bash('pwd')).text).toBe(folder.environment.cwd)
    const free = open({ mayEnterFolder: () => true })
    await free.bash('cd /')
    expect((await free.bash('pwd')).text).toBe('/')
  })

  it('that takes too long is ended with everything that it started', async () => {
    const seconds = createDuration()
    const { bash } = open()
    const { text, isError } = await bash(`echo begun; sleep ${seconds} & sleep ${seconds}`, {
      timeout: 3_000,
    })
    expect({ text, isError }).toEqual({
      text: 'The command took longer than 3 s and was ended with all its processes.\nOutput:\nbegun',
      isError: true,
    })
    expect(findProcesses(seconds)).toEqual([])
  })

  it('that ignores SIGTERM is killed', async () => {
    const seconds = createDuration()
    const { bash } = open()
    const { isError } = await bash(`trap '' TERM; while :; do sleep ${seconds}; done`, { timeout: 200 })
    expect(isError).toBe(true)
    expect(findProcesses(seconds)).toEqual([])
  })

  it('is ended when the turn is aborted', async () => {
    const seconds = createDuration()
    const { bash } = open()
    const abort = new AbortController()
    const running = bash(`echo begun; sleep ${seconds}`, {}, { signal: abort.signal })
    await waitForSleep(seconds)
    abort.abort()
    expect(await running).toMatchObject({ isError: true, text: expect.stringContaining('aborted') })
    expect(findProcesses(seconds)).toEqual([])
  })

  it('does not wait for a process that it leaves behind, which ends with the session', async () => {
    const seconds = createDuration()
    const { folder, bash } = open()
    const started = Date.now()
    const { text } = await bash(`sleep ${seconds} & echo done`)
    expect(text).toBe('done\n[A process started by the command is still running.]')
    expect(Date.now() - started).toBeLessThan(50_000)
    expect(findProcesses(seconds)).toHaveLength(1)
    await folder.environment.shells.close()
    expect(findProcesses(seconds)).toEqual([])
  })

  it('with a large output shows the beginning and the end, and the rest is in a file of the owner', async () => {
    const { folder, bash } = open()
    const { text } = await bash('seq 1 100; sleep 0.2; seq 101 20000')
    const whole = Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join('')
    const path = /output is in (\S+);/.exec(text)?.[1] ?? ''
    expect(path.startsWith(folder.environment.spillFolder)).toBe(true)
    expect(readFileSync(path, 'utf8')).toBe(whole)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const [head = '', note = '', tail = ''] = text.split('\n\n')
    expect(whole.startsWith(head) && whole.trimEnd().endsWith(tail)).toBe(true)
    expect(note).toContain(`[${(whole.length - 30_000).toLocaleString('en-US')} characters left out here.`)
  })

  it('within the limit leaves no file', async () => {
    const { folder, bash } = open()
    expect((await bash('head -c 30000 /dev/zero | tr "\\0" x')).text).toBe('x'.repeat(30_000))
    expect(readdirSync(folder.environment.spillFolder)).toEqual([])
  })

  it('reports its lines while it runs, at most twice a second', async () => {
    async function collectReports(msBetweenLooks: number): Promise<readonly string[]> {
      let now = 0
      const { bash } = open({
        now: () => {
          now += msBetweenLooks
          return now
        },
      })
      const reports: string[] = []
      const progress = (text: string): number => reports.push(text)
      await bash('echo one; sleep 0.3; echo two; sleep 0.3; printf half', {}, { progress })
      return reports
    }
    expect((await collectReports(1_000)).join('')).toBe('one\ntwo\n')
    expect((await collectReports(0))[0]).toMatch(/^one\n/)
    expect(await collectReports(0)).toHaveLength(1)
  })

  it('runs by sh where there is no bash, and is told if there is no shell', async () => {
    const { folder, bash } = open({ env: { PATH: '' } })
    mkdirSync(folder.path('sub'))
    const [posix] = ['/bin/sh'].filter((path) => existsSync(path))
    const bin = folder.path('bin')
    mkdirSync(bin)
    symlinkSync(posix ?? '', `${bin}/sh`)
    expect(await bash('echo x')).toMatchObject({
      isError: true,
      text: expect.stringContaining('could not be started'),
    })
    const other = createBashTools({ ...folder.environment, env: { PATH: bin } })
    await folder.call(other.Bash as AgentTool, { command: 'cd sub' })
    expect((await folder.call(other.Bash as AgentTool, { command: 'pwd' })).text).toBe(folder.path('sub'))
  })
})

describe('a background command', () => {
  it('returns an id, then its new output and its end', async () => {
    const { folder, bash, output } = open()
    const { text } = await bash('echo one; while [ ! -e go ]; do sleep 0.05; done; echo two; exit 2', {
      run_in_background: true,
    })
    expect(text).toContain('the id bash_1')
    const seen: string[] = []
    await waitUntil(async () => {
      seen.push((await output('bash_1')).text)
      return seen.at(-1)?.includes('one') === true
    })
    expect(seen.at(-1)).toBe('Running.\nOutput:\none')
    expect((await output('bash_1')).text).toBe('Running.\nOutput:\n(no new output)')
    folder.write('go', '')
    await waitUntil(() => folder.environment.shells.find('bash_1')?.end() !== null)
    expect((await output('bash_1')).text).toBe('Exit code: 2\nOutput:\ntwo')
  })

  it('can be filtered, and killed with all its processes', async () => {
    const seconds = createDuration()
    const { folder, bash, output, kill } = open()
    await bash(`echo info; echo error 1; echo warn; (sleep ${seconds}) & wait`, { run_in_background: true })
    await waitForSleep(seconds)
    expect(await output('bash_1', { filter: '(' })).toMatchObject({ isError: true })
    const shown = new Set<string>()
    await waitUntil(async () => {
      const { text } = await output('bash_1', { filter: 'error|warn' })
      for (const line of text.split('\n')) shown.add(line)
      return shown.has('warn')
    })
    shown.delete('(no new output)')
    expect([...shown]).toEqual(['Running.', 'Output:', 'error 1', 'warn'])
    expect((await kill('bash_1')).text).toMatch(/^Ended bash_1: echo info/)
    expect(findProcesses(seconds)).toEqual([])
    await waitUntil(() => folder.environment.shells.find('bash_1')?.end() !== null)
    expect((await output('bash_1')).text).toContain('ended by SIGTERM')
    expect((await kill('bash_1')).text).toBe('The command bash_1 had ended already.')
  })

  it('ends with the session', async () => {
    const seconds = createDuration()
    const { folder, bash } = open()
    await bash(`sleep ${seconds}`, { run_in_background: true })
    await waitForSleep(seconds)
    await folder.environment.shells.close()
    expect(findProcesses(seconds)).toEqual([])
  })

  it('that does not exist is told with those that do', async () => {
    const { bash, output, kill } = open()
    expect(await kill('x')).toMatchObject({
      text: 'There is no background command x. None was started.',
      isError: true,
    })
    await bash('true', { run_in_background: true })
    expect((await output('bash_9')).text).toBe('There is no background command bash_9. There are: bash_1.')
  })

  it('keeps a large output within the limit', async () => {
    const { folder, bash, output } = open()
    await bash('seq 1 20000', { run_in_background: true })
    await waitUntil(() => folder.environment.shells.find('bash_1')?.end() !== null)
    const { text } = await output('bash_1')
    expect(text.length).toBeLessThan(31_000)
    expect(readFileSync(/output is in (\S+);/.exec(text)?.[1] ?? '', 'utf8')).toMatch(
      /^1\n2\n[\s\S]*\n20000\n$/,
    )
  })
})
