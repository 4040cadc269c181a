/**
 * `tidemark/tools`: for the tools of an agent: files that are never half-written, commands with all the processes they
 * start, and patterns for paths and rules.
 *
 * @module tidemark/tools
 */

export {
  findProgram,
  isGroupAlive,
  type ProcessEnd,
  signalGroup,
  stopGroup,
  waitForExit,
} from './platform/process-groups.ts'
export {
  compileGlob,
  compileIgnorePattern,
  type Glob,
  MAX_GLOB_CHARACTERS,
  matchesStars,
} from './sources/path-glob.ts'
export { writeFileAtomic } from './storage/atomic-file.ts'
