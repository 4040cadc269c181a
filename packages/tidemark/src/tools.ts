/**
 * `tidemark/tools`: helpers for an agent's tools: files that are never half-written, commands ended together with all
 * their processes, and patterns for paths and rules.
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
