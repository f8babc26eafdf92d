import { decisions } from '../decisions/kind.ts'
import { testMutants } from './found.ts'

testMutants(decisions)
