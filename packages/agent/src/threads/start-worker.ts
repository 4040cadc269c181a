/** Starts the program's threads, from the build or, when run from sources, from the sources. */
import { Worker } from 'node:worker_threads'

/** Source files of the threads, relative to this folder. In the build, each is beside the other files. */
const SOURCES = {
  'search-worker': '../tools/search-worker.ts',
  'watchdog-worker': './watchdog-worker.ts',
} as const

/** Starts one of the program's threads. It keeps the process alive unless the caller calls `unref`. */
export function startWorker(name: keyof typeof SOURCES, workerData: unknown = null): Worker {
  const isSource = import.meta.url.endsWith('.ts')
  const entry = new URL(isSource ? SOURCES[name] : `./${name}.mjs`, import.meta.url)
  // A thread does not inherit the module hooks that resolve packages to their sources.
  const execArgv = isSource ? ['--conditions=tidemark-source'] : []
  return new Worker(entry, { workerData, execArgv, stdout: false, stderr: false })
}
