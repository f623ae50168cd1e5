package shop.stock

import shop.*

class Warehouse(private val size: Int)

fun reserve(item: Any) { println(item) }
internal fun Line.describe() = label(true)
