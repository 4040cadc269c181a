/** Why an act stopped short, in a sentence that says what to do. */
import type { Halt } from '@tidemark/core'

export function haltWords(halt: Halt): string {
  switch (halt.reason) {
    case 'conflict':
      return 'Another process wrote to the session meanwhile. Nothing of it was lost; try again.'
    case 'locked':
      return 'message' in halt.refusal ? halt.refusal.message : 'Another process holds the session.'
    case 'invalid': {
      const [first] = halt.findings
      return `The provider would refuse the request: ${first?.path ?? ''}: ${first?.message ?? 'invalid'}.`
    }
    case 'failed':
      return halt.failure.message
    case 'aborted':
      return 'It was called off.'
    case 'call-limit':
      return `The turn made ${halt.calls} calls to the model and was halted. Run with null to go on.`
    case 'prefix':
    case 'full':
      return halt.message
  }
}
