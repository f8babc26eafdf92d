import { load } from '../load-kind.ts'
import { testMutants } from './found.ts'

testMutants(load)
