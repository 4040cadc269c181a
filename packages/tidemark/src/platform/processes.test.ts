import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type ProcessIdentity, systemProcesses } from './processes.ts'

const { own } = systemProcesses
const hasProc = existsSync('/proc/self/stat')

describe('systemProcesses', () => {
  it('recognizes its own process', () => {
    expect(own.pid).toBe(process.pid)
    expect(systemProcesses.checkStatus(own)).toBe(hasProc ? 'running' : 'unknown')
  })

  it('cannot judge processes of other machines and containers', () => {
    expect(systemProcesses.checkStatus({ ...own, host: 'elsewhere' })).toBe('unknown')
    expect(systemProcesses.checkStatus({ ...own, pidSpace: 'another' })).toBe('unknown')
  })

  it.each([0, -1, 1.5, Number.NaN, 2 ** 40])('treats the process id %s as gone', (pid) => {
    expect(systemProcesses.checkStatus({ ...own, pid })).toBe('gone')
  })

  it('sees that a process has ended', async () => {
    const child = spawn(process.execPath, ['-e', ''])
    await once(child, 'exit')
    expect(systemProcesses.checkStatus({ ...own, pid: child.pid ?? 0 })).toBe('gone')
  })

  it.runIf(hasProc)('sees that the id was reused by another process', () => {
    expect(systemProcesses.checkStatus({ ...own, processStart: '1@another-boot' })).toBe('gone')
  })

  it.runIf(hasProc)('does not trust a process id without a start time', () => {
    expect(systemProcesses.checkStatus({ ...own, processStart: null })).toBe('unknown')
  })

  it.runIf(hasProc)('sees that a process has ended although its parent has not waited for it', async () => {
    // The shell starts a child and then becomes a program that never waits for it. The child must end after that:
    // a shell that sees its child end would wait for it.
    const shell = spawn('sh', ['-c', 'exec 3<&0; cat <&3 & echo $!; exec sleep 60 3<&-'])
    const [printed] = await once(shell.stdout, 'data')
    const mark: ProcessIdentity = { ...own, pid: Number(String(printed)), processStart: null }
    await until(() => readProcessName(shell.pid ?? 0) === 'sleep')
    expect(systemProcesses.checkStatus(mark)).toBe('unknown')
    shell.stdin.end()
    await until(() => readProcessState(mark.pid) === 'Z')
    expect(systemProcesses.checkStatus(mark)).toBe('gone')
    shell.kill()
  })
})

async function until(isDone: () => boolean): Promise<void> {
  while (!isDone()) await new Promise((resolve) => setImmediate(resolve))
}

function readProcessName(pid: number): string {
  return readFileSync(`/proc/${pid}/comm`, 'latin1').trim()
}

function readProcessState(pid: number): string | undefined {
  return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.[0]
}
