/** Features that are refused unless the request names a beta for them. Which, the profile says. */
import type { BetaRule } from '../../policy/profile.ts'
import { editsOf } from './edits.ts'
import { type Fields, fieldAt, isAbsent, type Report } from './finding.ts'
import { allBlocks, type ReadMessage } from './read.ts'

/** For each rule, in order, where the messages first need its beta. */
export type BetaState = readonly (string | null)[]

export function startBetas(rules: readonly BetaRule[]): BetaState {
  return rules.map(() => null)
}

export function stepBetas(state: BetaState, message: ReadMessage, rules: readonly BetaRule[]): BetaState {
  if (rules.length === 0) return state
  const blocks = allBlocks(message.blocks)
  return rules.map((rule, index) => {
    const known = state[index] ?? null
    if (known !== null) return known
    if (rule.where === 'block') return blocks.find(({ block }) => block.type === rule.name)?.path ?? null
    if (rule.where !== 'message-field' || message.fields[rule.name] === undefined) return null
    return `${message.path}.${rule.name}`
  })
}

export function betasOf({ betas }: Fields): ReadonlySet<unknown> {
  return new Set(Array.isArray(betas) ? betas : [])
}

export interface BetaRules {
  readonly betas: readonly BetaRule[]
  readonly report: Report
}

export function finishBetas(state: BetaState, request: Fields, rules: BetaRules): void {
  const inForce = betasOf(request)
  rules.betas.forEach((rule, index) => {
    if (rule.betas.some((beta) => inForce.has(beta))) return
    const path = state[index] ?? useInRequest(rule, request)
    if (path !== null) rules.report('beta-missing', path, `Expected the beta ${rule.betas.join(' or ')}.`)
  })
}

function useInRequest(rule: BetaRule, request: Fields): string | null {
  if (rule.where === 'field') return isAbsent(fieldAt(request, rule.name)) ? null : rule.name
  if (rule.where !== 'edit') return null
  return editsOf(request).find(([edit]) => edit.type === rule.name)?.[1] ?? null
}
