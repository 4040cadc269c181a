/** Starts the threads of the command: from the build, or from the sources where those run. */
import { Worker } from 'node:worker_threads'

/** The entries of threads, with their sources, from this folder. The build has each beside its other files. */
const SOURCES = {
  'search-worker': '../tools/search-worker.ts',
  'watchdog-worker': './watchdog-worker.ts',
} as const

/** Starts a thread. It does not keep the process alive by itself once `unref` was called. */
export function startWorker(name: keyof typeof SOURCES, workerData: unknown = null): Worker {
  const isSource = import.meta.url.endsWith('.ts')
  const entry = new URL(isSource ? SOURCES[name] : `./${name}.mjs`, import.meta.url)
  // A thread does not inherit the hooks that make packages resolve to their sources.
  const execArgv = isSource ? ['--conditions=tidemark-source'] : []
  return new Worker(entry, { workerData, execArgv, stdout: false, stderr: false })
}
