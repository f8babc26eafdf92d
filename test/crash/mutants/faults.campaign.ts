import { faults } from '../faults/kind.ts'
import { testMutants } from './found.ts'

testMutants(faults)
