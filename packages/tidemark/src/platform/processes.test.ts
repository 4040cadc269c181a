import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type ProcessMark, systemProcesses } from './processes.ts'

const { own } = systemProcesses
const hasProc = existsSync('/proc/self/stat')

describe('systemProcesses', () => {
  it('knows itself', () => {
    expect(own.pid).toBe(process.pid)
    expect(systemProcesses.fateOf(own)).toBe(hasProc ? 'running' : 'unknown')
  })

  it('cannot tell of other machines and other containers', () => {
    expect(systemProcesses.fateOf({ ...own, host: 'elsewhere' })).toBe('unknown')
    expect(systemProcesses.fateOf({ ...own, pidSpace: 'another' })).toBe('unknown')
  })

  it.each([0, -1, 1.5, Number.NaN, 2 ** 40])('takes %s for nobody', (pid) => {
    expect(systemProcesses.fateOf({ ...own, pid })).toBe('gone')
  })

  it('sees that a process has ended', async () => {
    const child = spawn(process.execPath, ['-e', ''])
    await once(child, 'exit')
    expect(systemProcesses.fateOf({ ...own, pid: child.pid ?? 0 })).toBe('gone')
  })

  it.runIf(hasProc)('sees that the id was given to another process', () => {
    expect(systemProcesses.fateOf({ ...own, processStart: '1@another-boot' })).toBe('gone')
  })

  it.runIf(hasProc)('does not trust an id alone', () => {
    expect(systemProcesses.fateOf({ ...own, processStart: null })).toBe('unknown')
  })

  it.runIf(hasProc)('sees that a process has ended though nobody asked after it', async () => {
    // The shell starts a child and becomes a program that never waits for it. The child ends only after that:
    // a shell that sees its child end takes leave of it.
    const shell = spawn('sh', ['-c', 'exec 3<&0; cat <&3 & echo $!; exec sleep 60 3<&-'])
    const [printed] = await once(shell.stdout, 'data')
    const mark: ProcessMark = { ...own, pid: Number(String(printed)), processStart: null }
    await until(() => nameOf(shell.pid ?? 0) === 'sleep')
    expect(systemProcesses.fateOf(mark)).toBe('unknown')
    shell.stdin.end()
    await until(() => stateOf(mark.pid) === 'Z')
    expect(systemProcesses.fateOf(mark)).toBe('gone')
    shell.kill()
  })
})

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

function nameOf(pid: number): string {
  return readFileSync(`/proc/${pid}/comm`, 'latin1').trim()
}

function stateOf(pid: number): string | undefined {
  return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.[0]
}
