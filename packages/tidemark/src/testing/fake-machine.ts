/**
 * A fake machine whose processes start and end on command. Tests use it for code that checks whether a lock holder
 * still runs.
 */
import type { ProcessIdentity, ProcessPort } from '../platform/processes.ts'

export interface FakeProcessTable {
  /** Starts a fake process. Returns the port by which that process identifies itself and checks others. */
  start(): ProcessPort
  end(process: ProcessPort): void
  /** Ends all processes, as a restart of the machine would. */
  restart(): void
}

export function createFakeProcessTable(host = 'wren'): FakeProcessTable {
  const running = new Set<number>()
  let started = 0
  return {
    start() {
      started += 1
      const own: ProcessIdentity = { pid: started, host, processStart: String(started), pidSpace: null }
      running.add(own.pid)
      return { own, checkStatus: (mark) => (mark.host === host ? fateOf(running, mark) : 'unknown') }
    },
    end: ({ own }) => running.delete(own.pid),
    restart: () => running.clear(),
  }
}

function fateOf(running: ReadonlySet<number>, { pid }: ProcessIdentity): 'running' | 'gone' {
  return running.has(pid) ? 'running' : 'gone'
}
