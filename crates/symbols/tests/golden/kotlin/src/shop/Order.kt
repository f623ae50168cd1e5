package shop

import kotlinx.coroutines.delay
import shop.stock.Warehouse
import shop.stock.reserve as book

typealias Lines = List<Line>

const val LIMIT: Int = 100
val String.shout: String
    get() = uppercase()

interface Priced {
    val total: Int
    fun label(verbose: Boolean = false): String = "$total"
}

@Serializable
data class Line(val price: Int, var count: Int = 1, note: String? = null) : Priced {
    override val total get() = price * count

    companion object {
        @JvmStatic fun empty(): Line = Line(0)
    }
}

sealed class Event<out T : Any>(protected val id: Long) : Document(), Priced by Line.empty() {
    class Created(id: Long) : Event<Nothing>(id)
    object Closed : Event<Nothing>(0)
    inner class Inner
    init { register(this) }
    constructor(text: String) : this(text.toLong())
    lateinit var owner: String
    private val cache by lazy { mutableMapOf<String, Int>() }
}

enum class Status(val word: String) : Priced {
    OPEN("open") { override fun next() = CLOSED },
    CLOSED("closed");

    abstract fun next(): Status
}

object Registry : Priced {
    private val events = mutableListOf<Event<*>>()
    operator fun plus(event: Event<*>) = events.add(event)
}

fun interface Handler { suspend fun handle(event: Event<*>): Boolean }

suspend inline fun <reified T : Any> List<T>.ship(crossinline then: (T) -> Unit, vararg tags: String): Result<T> {
    fun local() = 1
    delay(10)
    forEach { then(it); book(it) }
    return Result.success(first())
}

annotation class Serializable
