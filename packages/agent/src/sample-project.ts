/** The sample in the package: a project with a real fault, and a scenario that repairs it. Neither is ever written to. */
import { fileURLToPath } from 'node:url'

/** The folder of the sample project, of which the tour makes copies. The path works from both `src/` and `dist/`. */
export const SAMPLE_PROJECT_PATH: string = fileURLToPath(new URL('../sample/project', import.meta.url))

/** A scenario of the simulator that repairs a copy of the sample project. */
export const FIX_SCENARIO_PATH: string = fileURLToPath(new URL('../sample/fix.yaml', import.meta.url))
