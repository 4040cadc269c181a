/** Runs an agent alone in a process of its own, and prints the run as JSON: the heap that is measured holds nothing of a test runner. */
import { runUnattended, type UnattendedOptions } from './unattended-run.ts'

const run = await runUnattended(JSON.parse(process.argv[2] ?? '{}') as UnattendedOptions)
process.stdout.write(JSON.stringify(run))
