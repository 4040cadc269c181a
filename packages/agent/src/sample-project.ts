/** The sample that is part of the package: a project with a real fault, and a model that repairs it. Never written. */
import { fileURLToPath } from 'node:url'

/** The folder of the sample project. The tour works on copies of it. The path is right from `src/` and from `dist/`. */
export const SAMPLE_PROJECT_PATH: string = fileURLToPath(new URL('../sample/project', import.meta.url))

/** A scenario of the simulator that repairs a copy of the sample project. */
export const FIX_SCENARIO_PATH: string = fileURLToPath(new URL('../sample/fix.yaml', import.meta.url))
