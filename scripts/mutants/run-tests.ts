/** Runs vitest over a copy of the repository and reads its JSON report. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { TestOutcome } from './verdict.ts'

export interface TestLimits {
  readonly timeoutMs: number
  /** Ends the run at once: the person stopped the script. */
  readonly signal: AbortSignal
}

export async function runTests(
  copy: string,
  tests: readonly string[],
  limits: TestLimits,
): Promise<TestOutcome> {
  limits.signal.throwIfAborted()
  const report = join(copy, 'vitest-report.json')
  rmSync(report, { force: true })
  const args = [
    vitestIn(copy),
    'run',
    ...tests,
    '--reporter=json',
    `--outputFile=${report}`,
    '--passWithNoTests',
  ]
  const { timedOut, output } = await run(args, copy, limits)
  limits.signal.throwIfAborted()
  if (timedOut) return { ran: 0, failed: [], broken: [], timedOut }
  return outcomeOf(readReport(report), output)
}

function vitestIn(copy: string): string {
  return join(dirname(createRequire(join(copy, 'package.json')).resolve('vitest/package.json')), 'vitest.mjs')
}

interface Ended {
  readonly timedOut: boolean
  readonly output: string
}

function run(args: readonly string[], copy: string, { timeoutMs, signal }: TestLimits): Promise<Ended> {
  return new Promise((resolve, reject) => {
    // A group of its own, so that workers caught in an endless loop can be ended with it.
    const child = spawn(process.execPath, args, { cwd: copy, env: cleanEnv(), detached: true })
    let output = ''
    let timedOut = false
    const abort = (): void => stop(child)
    signal.addEventListener('abort', abort)
    const timer = setTimeout(() => {
      timedOut = true
      stop(child)
    }, timeoutMs)
    child.stdout.on('data', (piece) => (output += piece))
    child.stderr.on('data', (piece) => (output += piece))
    child.on('error', reject)
    child.on('close', () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      resolve({ timedOut, output })
    })
  })
}

function stop(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    child.kill('SIGKILL')
  }
}

/** Without what a surrounding test run has set. */
function cleanEnv(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|TEST$|NODE_ENV$|NODE_OPTIONS$)/.test(name),
  )
  return Object.fromEntries(kept)
}

/** As much of vitest's JSON report as is read here. */
interface Report {
  readonly numTotalTests: number
  readonly success: boolean
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[]
      readonly title: string
      readonly status: string
    }[]
  }[]
}

function readReport(path: string): Report | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return null
  }
}

function outcomeOf(report: Report | null, output: string): TestOutcome {
  if (report === null)
    return {
      ran: 0,
      failed: [],
      broken: [`vitest wrote no report: ${output.trim().slice(-400)}`],
      timedOut: false,
    }
  const tests = report.testResults.flatMap((file) => file.assertionResults)
  const failed = tests.filter(({ status }) => status === 'failed')
  const broken = report.testResults
    .filter(
      (file) => file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed'),
    )
    .map(({ name, message }) => `${name}: ${message}`)
  const stray = report.success || failed.length > 0 || broken.length > 0 ? [] : ['an error outside any test']
  return {
    ran: tests.filter(({ status }) => status === 'passed' || status === 'failed').length,
    failed: failed.map(({ ancestorTitles, title }) => [...ancestorTitles, title].join(' > ')),
    broken: [...broken, ...stray],
    timedOut: false,
  }
}
